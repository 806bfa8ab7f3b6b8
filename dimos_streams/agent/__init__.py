"""The agent: reads tool streams into its queue and drives a model that calls skills."""
