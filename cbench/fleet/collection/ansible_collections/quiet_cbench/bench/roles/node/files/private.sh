# Print the path of the directory $1. Fail if it, or a directory or link on the way to it, can be changed by a user
# other than this one, root, and the one who called sudo. If it does not exist: with $2 = create, create it for this
# user alone, and print "created"; with $2 = exists, fail; otherwise print "missing".
set -f
LC_ALL=C

refuse() {
    echo "$1; set quiet_cbench_home to a directory that only this user can change, such as one below ~" >&2
    exit 1
}

shared() { # whether the group with the ID $1 has other members; `group` begins with its name
    group=$(getent group "$1") || {
        group=$1
        return 0
    }
    {
        echo "$group" | cut -d : -f 4 | tr , '\n'
        getent passwd | cut -d : -f 1,4 | grep ":$1\$" | cut -d : -f 1
    } | grep -Fqvx -e '' -e root -e "$(id -un)" -e "${SUDO_USER:-root}"
}

check() { # fail if another user can change $1; with $2 = sticky, other users may create entries, as in /tmp
    # shellcheck disable=SC2046
    set -- "$1" "$2" $(ls -ldn -- "$1") # mode, links, user ID, group ID
    case " 0 $(id -u) ${SUDO_UID:-0} " in
    *" $5 "*) ;;
    *) refuse "$1 belongs to user $(ls -ld -- "$1" | { read -r _ _ user _ && echo "$user"; })" ;;
    esac
    case $3$2 in
    l* | d????????[tT]*sticky) ;;
    ????????w*) refuse "every user can change $1" ;;
    ?????w????+*) refuse "users in the access control list of $1 can change it" ;;
    ?????w*) ! shared "$6" || refuse "the members of group ${group%%:*} can change $1" ;;
    esac
}

case $1 in /*) rest=$1 ;; *) rest=$PWD/$1 ;; esac
echo "$rest"
place=
while [ -n "$rest" ]; do
    part=${rest%%/*}
    case $rest in */*) rest=${rest#*/} ;; *) rest= ;; esac
    case $part in
    '' | .) continue ;;
    ..)
        place=${place%/*}
        continue
        ;;
    esac
    step=$place/$part
    if [ ! -e "$step" ]; then
        case $2 in
        create)
            # Another node's controller may create it at the same time.
            (umask 077 && mkdir -- "$step") || [ -d "$step" ] || exit 1
            echo created
            ;;
        exists)
            echo "$step: no such directory" >&2
            exit 1
            ;;
        *)
            echo missing
            exit 0
            ;;
        esac
    fi
    check "$step" sticky
    if [ -L "$step" ]; then
        to=$(readlink -- "$step")
        case $to in /*) place= ;; esac
        rest=$to/$rest
    else
        place=$step
    fi
done
check "${place:-/}" ''
