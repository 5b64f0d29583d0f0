complete --keep-order --exclusive --command cowboyctl --arguments "(COMPLETE=fish cowboyctl -- (commandline --current-process --tokenize --cut-at-cursor) (commandline --current-token))"
