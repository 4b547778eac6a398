# Runs in a guest that boots as a host does, once a boot: a study that reboots it, then one that restarts a service.
site=/usr/lib/python3/dist-packages
order() { python3 -P -m cbench order "$@"; }

if [ "$LAB_BOOT" = 1 ]; then
    rm $site/checkout.pth # a unit runs before the checkout is there: the commands are installed on the disk
    tar c --exclude=__pycache__ quiet cbench | tar x -C $site
    cp tests/lab/guest/studies/boots.toml /srv/
    cp -r docs/studies/memcached /srv/
    cd /srv
    order run boots.toml -o 'the study.db'
    echo "the first boot did not end: $?"
    exit 1
fi

cd /srv
for _ in $(seq 120); do
    case $(order status 'the study.db' --json) in *'"finished": true'*) break ;; esac
    sleep 2
done
order status 'the study.db' --json >"$LAB_OUT/status.json"
ls /etc/systemd/system /etc/systemd/system/multi-user.target.wants >"$LAB_OUT/units"
cat /proc/sys/kernel/random/boot_id >"$LAB_OUT/boot_id"
echo "$LAB_BOOT" >"$LAB_OUT/boots"

systemctl start memcached
sed -i 's/\([124]\)0_000/\1_000/' memcached/load.py # a tenth of the keys and requests: an emulated processor is slow
sed -i 's/^repetitions = .*/repetitions = 2/' memcached/study.toml
order run memcached/study.toml -o memcached.db
echo $? >"$LAB_OUT/memcached.code"
sed 's/memcached.service/nobody-has.service/; s/^setup = .*//; s/^repetitions = .*/repetitions = 1/' memcached/study.toml >memcached/none.toml
order run memcached/none.toml -o none.db 2>"$LAB_OUT/none.err"
echo $? >"$LAB_OUT/none.code"

python3 - "$LAB_OUT" 'the study.db' memcached.db none.db <<'PYTHON'
import json
import sqlite3
import sys

found = {}
for path in sys.argv[2:]:
    with sqlite3.connect(path) as connection:
        connection.row_factory = sqlite3.Row
        rows = {table: connection.execute(f"SELECT * FROM {table}").fetchall() for table in ("study_run", "study_trial", "study_value")}
        found[path] = {table: [{key: str(row[key], "utf-8") if isinstance(row[key], bytes) else row[key] for key in row.keys()} for row in each] for table, each in rows.items()}
with open(f"{sys.argv[1]}/stores.json", "w") as file:
    json.dump(found, file)
PYTHON
