"""List commands with wrong options or input, and a few special ones, each by itself."""

from __future__ import annotations

USAGE = """
quiet
quiet --version
quiet --bogus
quiet bogus
quiet kernel
quiet boot
quiet plan --bogus
quiet plan --cpus
quiet plan extra
quiet plan --profile bogus
quiet plan --profile none/x.toml
quiet plan --profile files/not-toml.toml
quiet plan --profile files/wrong-knob.toml
quiet plan --profile files/wrong-value.toml
quiet plan --profile files
quiet plan --root none
quiet plan --root ""
quiet plan --root files/mine.toml
quiet plan --root hosts/smt --cpus 9
quiet plan --root hosts/smt --cpus 9 --json
quiet plan --root hosts/smt --cpus 3-1
quiet plan --root hosts/smt --cpus a
quiet plan --root hosts/smt --cpus 0-7
quiet status --root none
quiet verify --root none
quiet verify --root hosts/smt --duration 1
quiet verify --root hosts/smt --duration soon
quiet verify --root hosts/smt --duration 0 --max-gap 5
quiet verify --root hosts/smt --duration 0 --max-lost much
quiet verify --root hosts/smt --duration 0 --profile bogus
quiet restore --root none
quiet restore --root hosts/smt --force --keep
quiet apply --root none
quiet apply --root hosts/smt --profile bogus
quiet noise
quiet noise --cpus 9999
quiet noise --cpus x
quiet noise --cpus 0 --duration 0
quiet noise --cpus 0 --duration -1
quiet noise --cpus 0 --duration 1 --threshold 5
quiet noise --cpus 0 --duration 1 --max-gap x
quiet noise --cpus 0 --duration 1 --timeline none/x.html
quiet noise --cpus 0 --duration 1 --fifo 1000
quiet explain bogus
quiet explain bogus --json
quiet record
quiet record none/x.tar.gz --root hosts/smt
quiet record x.tar.gz --root none
quiet record files --root hosts/smt
quiet kernel check bogus --root hosts/smt
quiet kernel check --config none
quiet kernel check --config files/mine.toml --root hosts/smt
quiet boot plan --root hosts/smt --loader bogus
quiet boot plan --root none
quiet restore --root hosts/smt
quiet restore --root hosts/smt --json
quiet watch --root hosts/smt --duration 0.1
quiet watch --root hosts/smt --duration soon
quiet kernel check isolation --config files/all.config --root hosts/smt
quiet kernel check --config files/all.config --root hosts/smt --json
quiet kernel check --config files/some.config --root hosts/smt
quiet record masked.tar.gz --root hosts/host --json
quiet record unmasked.tar.gz --root hosts/host --unmasked
cbench
cbench --bogus
cbench bogus
cbench run
cbench run hush
cbench run hush --json
cbench run hash --nonsense
cbench run hash --trials x
cbench run hash --trials 0
cbench run hash --trials 1000000000
cbench run hash --warmup soon
cbench run hash --timeout 0
cbench run hash --cpu 60000
cbench run hash --cpu x
cbench run hash --cpu ""
cbench run hash --param q=1
cbench run hash --param n
cbench run hash --param n=many
cbench run hash --param n=-1
cbench run sieve --param n=2
cbench run memory --param size=0
cbench run memory --param size=1099511627776
cbench run hash --counter speed
cbench run hash --events bogus
cbench run hash --vary bogus
cbench run hash --vary all --processes 1
cbench run hash --processes 0
cbench run hash --until-clean 0
cbench run hash --stop-machine
cbench run hash --in-kernel
cbench run hash --environment -1
cbench run hash --stack x
cbench run hash -o none/a.db
cbench run hash -o files
cbench run no/such/file.c:run
cbench run file.c
cbench run file.c:
cbench run "file.c:a b"
cbench run file.py:run
cbench run screens/planted/planted.c:nothing
cbench run screens/planted/screen.toml:planted
cbench sweep
cbench sweep memory --sizes x
cbench sweep memory --sizes 1K-
cbench sweep memory --accesses x
cbench sweep memory --workload hash
cbench sweep memory -o x.bmp
cbench sweep memory -o none/x.svg
cbench interfere
cbench interfere hush
cbench interfere hash --load hush
cbench interfere hash --rounds 0
cbench step
cbench step hush
cbench compare
cbench compare stores/a.db
cbench compare stores/a.db none.db
cbench compare stores/a.db files/not-a-database.db
cbench compare stores/a.db files/empty.db
cbench compare stores/a.db stores/study.db
cbench compare stores/a.db:bogus stores/b.db:hash
cbench compare stores/a.db stores/b.db --headline bogus
cbench compare stores/a.db stores/b.db --level 0
cbench compare stores/a.db stores/b.db --level 100
cbench compare stores/a.db stores/b.db --threshold x
cbench compare files/not-pyperf.json files/a.json
cbench export
cbench export stores/a.db
cbench export stores/a.db --format bogus
cbench export none.db --format csv
cbench export files/not-a-database.db --format csv
cbench export files/empty.db --format csv
cbench export stores/a.db --format csv -o none/x.csv
cbench export stores/a.db --format parquet
cbench export stores/a.db --format csv --json
cbench order
cbench order bogus
cbench order init files/exact-study.toml
cbench order init none/study.toml
cbench order plan
cbench order plan none.toml
cbench order plan files/not-toml.toml
cbench order plan files/exact-screen.toml
cbench order run
cbench order run none.toml
cbench order run files/no-tests.toml
cbench order run files/wrong-key.toml
cbench order run files/wrong-type.toml
cbench order run files/wrong-workload.toml
cbench order run files/not-toml.toml
cbench order run files/exact-screen.toml
cbench order run files/exact-study.toml -o stores/study.db
cbench order run files/exact-study.toml -o none/x.db
cbench order resume none.db
cbench order resume stores/study.db
cbench order resume stores/screen.db
cbench order status none.db
cbench order status files/not-a-database.db
cbench order status stores/a.db
cbench order status stores/screen.db
cbench order analyze
cbench order analyze none.db
cbench order analyze none.csv
cbench order analyze files/not-a-database.db
cbench order analyze files/empty.db
cbench order analyze files/empty.csv
cbench order analyze files/no-columns.csv
cbench order analyze files/no-number.csv
cbench order analyze files/one-order.csv
cbench order analyze files/one-order.csv --json
cbench order analyze stores/a.db
cbench order analyze stores/screen.db
cbench order analyze stores/study.db --alpha 2
cbench order analyze stores/study.db --ci-level 5000
cbench order analyze stores/study.db --delta x
cbench order analyze files/orders-table.csv --value bogus
cbench order analyze stores/study.db --every-rule
cbench order report stores/study.db
cbench order report stores/study.db -o none/x.html
cbench screen
cbench screen bogus
cbench screen init files/exact-screen.toml
cbench screen plan none.toml
cbench screen plan files/one-level.toml
cbench screen plan files/exact-study.toml
cbench screen plan files/not-toml.toml
cbench screen run none.toml
cbench screen run files/one-level.toml
cbench screen run files/exact-screen.toml -o stores/screen.db
cbench screen resume none.db
cbench screen resume stores/screen.db
cbench screen resume stores/study.db
cbench screen status none.db
cbench screen status stores/a.db
cbench screen status stores/study.db
cbench screen analyze
cbench screen analyze none.db
cbench screen analyze files/empty.csv
cbench screen analyze files/no-columns.csv
cbench screen analyze files/not-a-database.db
cbench screen analyze stores/a.db
cbench screen analyze stores/study.db
cbench screen analyze stores/screen.db --alpha 2
cbench screen analyze stores/screen.db --abridgment bogus
cbench screen analyze stores/screen.db --only bogus
cbench screen analyze stores/screen.db --minus bogus=1
cbench screen analyze stores/screen.db --subsamples -1
cbench screen analyze stores/screen.db --factor x
cbench screen analyze files/screen-table.csv --factor bogus
cbench screen analyze files/screen-table.csv --value bogus
cbench screen report stores/screen.db
cbench screen report stores/screen.db -o none/x.html
cbench screen validate --no-run -o none.db
cbench screen validate --workload bogus
cbench screen validate --instrument bogus
cbench screen validate --samples 1
cbench screen validate --no-run -o stores/a.db
"""
