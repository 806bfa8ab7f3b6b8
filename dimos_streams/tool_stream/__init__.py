"""Tool streams: the ordered events of calls, from the skill that makes them to whoever reads them."""
