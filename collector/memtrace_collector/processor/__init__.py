"""From the log onwards: project into the store, complete links, forward."""
