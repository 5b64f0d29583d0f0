# Leaves by SystemExit while the module is loaded.
# expect: deploy: SystemExit
raise SystemExit(0)
