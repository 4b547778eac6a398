"""What must survive a reboot: the kernel's command line, in the boot loader's own files or by one kexec.

words       a command line as the kernel reads it          parameters  what is known of each parameter
wish        what a profile wants on this host              merge       the wish with what is there already
loaders     where a boot loader keeps the line             plan        what apply would write and run
disk        files with their modes, owners and times       record      what was changed, across reboots
"""

HOME = "/var/lib/quiet"
FILE = f"{HOME}/boot.json"  # the record; here, because `status` looks for it and loads nothing more without it
