custom_hooks = [dict(type='TNSHook', interval=100)]
