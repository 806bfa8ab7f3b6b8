"""Keys and words in closes that more than one side knows."""

STOPPED = "an operator has stopped the robot"
"""The beginning of the reason for which the calls that a stop of the robot ends are cancelled."""

MISFIT = "misfit"
"""The key in a completed close under which stands, in words, how the result is not as its skill declares it."""

UNAWAITED = "unawaited"
"""The key in a close under which stands, in words, what the skill made and did not await."""
OF_AUTHORS = (MISFIT, UNAWAITED)
"""The keys in a close of what is wrong with the code of its skill, though the call has ended as it says."""

BAD_ARGUMENTS = "arguments"
"""The ``error`` in the data of a close that rejects a call whose arguments its module does not take."""

NOT_RUN = "not_run"
"""The key in a close of a call that was ended before anything of its skill ran: it has left nothing to take back."""

TO_END = "to_end"
"""The key, in the close of a call that failed or was lost when it was to end, of the reason why it was to end."""
