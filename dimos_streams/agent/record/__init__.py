"""The record of an agent: its events, and the mission record on disk that is made of them."""
