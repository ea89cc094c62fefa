#!/bin/sh
# What has to be there before the servers start: passwords of the database's roles and of Grafana's
# administrator, made once and readable by nobody but who needs them, and volumes that belong to who
# writes them. Runs as root with CAP_CHOWN alone, which is why files are replaced and never changed.
set -eu

secrets=${MEMTRACE_SECRETS:?the folder for the passwords}
postgres=999 memtrace=10001 grafana=472 # user ids of the images

made() { # NAME: the password, made when there is none
    if [ ! -s "$secrets/$1" ]; then
        od -An -v -tx1 -N24 /dev/urandom | tr -d ' \n' >"$secrets/$1.new"
        mv "$secrets/$1.new" "$secrets/$1"
    fi
    cat "$secrets/$1"
}

hand() { # USER NAME TEXT: a file that this user alone can read
    rm -f "$secrets/$2.new"
    printf '%s\n' "$3" >"$secrets/$2.new"
    chown "$1" "$secrets/$2.new"
    mv -f "$secrets/$2.new" "$secrets/$2"
}

umask 077
superuser=$(made superuser) owner=$(made owner) reader=$(made reader) admin=$(made admin)
hand "$postgres" postgres.superuser "$superuser"
hand "$postgres" postgres.owner "$owner"
hand "$postgres" postgres.reader "$reader"
hand "$memtrace" memtrace.pgpass "postgres:5432:memtrace:memtrace:$owner"
hand "$grafana" grafana.reader "$reader"
hand "$grafana" grafana.admin "$admin"
chmod 755 "$secrets"

for folder in "$@"; do # each of them belongs to our own user from now on
    chown "$memtrace:$memtrace" "$folder"
done
