"""``shardlog profile``: the time of an evaluation, as tables and as a page.

In: a ``datalog.profile.Profile``. Out: text, or HTML that needs nothing but a browser.
"""
