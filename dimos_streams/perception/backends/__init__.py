"""Detector backends: what finds objects in an image, each behind the protocol of ``perception.detector``."""
