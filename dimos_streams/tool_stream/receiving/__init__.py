"""The receiving end of tool streams.

An event passes ``EventAdmission``, which refuses what is not its call's. ``ToolStreamReceiver`` looks its call up in
the ``ReceivedCalls``, and delivers it through ``BatchedDelivery`` or keeps it in the call's ``ReorderBuffer``.
``NackSchedule`` asks for what is missing, and ``Acks`` say what is safe. The stages of a call are in
``received_call.CallStage``.
"""
