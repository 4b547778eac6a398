# Runs in a guest that GRUB boots, once per boot: an experiment whose hard factor is a word of the kernel's command line.
site=/usr/lib/python3/dist-packages
screen() { python3 -P -m cbench screen "$@"; }

if [ "$LAB_BOOT" = 1 ]; then
    rm $site/checkout.pth # a unit runs before the checkout is there: the commands are installed on the disk
    tar c --exclude=__pycache__ quiet cbench | tar x -C $site
    cp tests/lab/guest/studies/words.toml /srv/
    cat >/srv/leave <<'END'
#!/bin/sh -e
mkdir -p /etc/default/grub.d
echo "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet $CBENCH_KERNEL\"" >/etc/default/grub.d/lab.cfg
update-grub
systemctl reboot
END
    chmod +x /srv/leave
    cd /srv
    screen run words.toml -o 'the words.db'
    echo "the first boot did not end: $?"
    exit 1
fi

cd /srv
for _ in $(seq 120); do
    case $(screen status 'the words.db' --json) in *'"finished": true'*) break ;; esac
    sleep 2
done
screen status 'the words.db' --json >"$LAB_OUT/status.json"
ls /etc/systemd/system /etc/systemd/system/multi-user.target.wants >"$LAB_OUT/units"
echo "$LAB_BOOT" >"$LAB_OUT/boots"
python3 - "$LAB_OUT" 'the words.db' <<'PYTHON'
import json
import sqlite3
import sys

with sqlite3.connect(sys.argv[2]) as store:
    names, host = store.execute("SELECT tests, host FROM study").fetchone()
    found = {
        "tests": json.loads(names),
        "batches": json.loads(host)["screen"]["batches"],
        "runs": [[kind, json.loads(reset or "{}"), json.loads(facts or "{}"), failure] for kind, reset, facts, failure in store.execute("SELECT kind, reset, facts, failure FROM study_run ORDER BY run")],
        "trials": [[run, position, test, failure, output.decode()] for run, position, test, failure, output in store.execute("SELECT run, position, test, failure, output FROM study_trial ORDER BY run, position")],
    }
with open(f"{sys.argv[1]}/store.json", "w") as file:
    json.dump(found, file)
PYTHON
