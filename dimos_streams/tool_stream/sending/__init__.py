"""The sending end of tool streams: numbered events, kept until each receiver has them."""
