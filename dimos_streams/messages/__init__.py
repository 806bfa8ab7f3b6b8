"""LCM messages: classes made from ``lcm_types``, their codec, and helpers for pictures and time stamps."""
