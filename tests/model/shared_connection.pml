/* Requests that share their connections to one node: order and delivery.
 *
 * Two properties are checked:
 * - No reply is delivered to the wrong request.
 * - When everything has come to rest, every request has ended, and no key of an owner that was released is left. A key
 *   may be left only if the reply to its SET was pending on a connection that broke.
 *
 * Each request makes one attempt on one resource, so its number is its owner. The hash of the resource chooses the
 * same connection for all of them. A connection has a buffer of collected commands, and a list with one entry for each
 * command whose reply has not arrived. These are the rules for the code:
 *
 * 1. An entry is added to the list together with the command in the buffer, under one mutex and in the same order.
 * 2. Each reply takes the first entry of the list. The entry of a request that has ended stays and takes its reply.
 * 3. A request that leaves without a reply to its SET does one of two things. If no byte of the SET was passed to the
 *    kernel, it may remove the SET from the buffer together with its entry. Otherwise it puts a release directly into
 *    the buffer of the connection on which the SET is pending, even if new requests use another connection already.
 *    A SET that stays in the buffer counts as sent.
 * 4. A connection that is given up drains: it still writes its buffer and reads all its replies. It may be closed when
 *    its list is empty. It is not enough that each pending SET has its release behind it, because a connection that is
 *    closed can lose the release and keep the SET.
 * 5. If a connection breaks, nothing can be written behind a pending SET any more. Each release without a reply is then
 *    sent again on the next connection, also a release that was only collected. A request whose SET was passed to the
 *    kernel sends its release there. This release may overtake the SET; then the key stays until it expires.
 * 6. If the reply is NOSCRIPT, a release is always sent again. An acquisition is sent again only by a request that has
 *    not left. After its release, the acquisition would create a key that nobody releases.
 *
 * Messages. The bytes of one connection arrive in order. The server executes the commands of different connections in
 * any order. When a connection breaks, the server may have received any part of the bytes, and execute that part later.
 * A write takes any number of commands, so the time at which commands are collected and written does not matter here.
 * Keys do not expire. Each step of the library is atomic, because it happens under the mutex of the node.
 *
 * The number of steps is bounded, and the graph of the states has no cycle. So "every request ends" means that all have
 * ended in each state in which nothing can happen any more. */

#ifndef REQUESTS
#define REQUESTS 2
#endif
#ifndef CONNECTIONS
#define CONNECTIONS 2 /* one after another; the last one is neither given up nor broken */
#endif
#ifndef NOSCRIPTS
#define NOSCRIPTS 1 /* how many commands get the reply NOSCRIPT */
#endif
#define NOBODY 255
#define ROOM 8

#define SET(a) (a)
#define RELEASE(a) ((a) + REQUESTS)
#define owner(command) ((command) % REQUESTS)
#define is_release(command) ((command) >= REQUESTS)

/* Replies. */
#define NONE 0
#define DONE 1
#define REFUSED 2
#define NOSCRIPT 3

chan buffer[CONNECTIONS] = [ROOM] of {byte};         /* collected commands */
chan list[CONNECTIONS] = [ROOM] of {byte};           /* the commands whose replies have not arrived */
chan to_server[CONNECTIONS] = [ROOM] of {byte};
chan to_client[CONNECTIONS] = [ROOM] of {byte, byte}; /* a command and its reply */

byte current;             /* the connection for new requests */
bool broken[CONNECTIONS];
byte key = NOBODY;        /* its owner */
byte noscripts;           /* so far */
byte on[REQUESTS];        /* the connection with the SET */
byte reply[REQUESTS];     /* to the SET */
bool left[REQUESTS];      /* the request has ended */
bool written[REQUESTS];   /* its SET is written, and its reply is pending */
bool unknown[REQUESTS];   /* its SET was pending on a connection that broke */
bool must_release[REQUESTS], released[REQUESTS]; /* a release is due; it was executed */

#define collect(c, command)                                                                                            \
    buffer[c] ! command;                                                                                               \
    list[c] ! command
#define is_listed(c, command) (list[c] ?? [eval(command)])
#define empty_out(channel)                                                                                             \
    do                                                                                                                 \
    :: nempty(channel) -> channel ? _                                                                                  \
    :: empty(channel) -> break                                                                                         \
    od;                                                                                                                \
    skip

#define lose_replies(c)                                                                                                \
    do                                                                                                                 \
    :: nempty(to_client[c]) -> to_client[c] ? _, _                                                                     \
    :: empty(to_client[c]) -> break                                                                                    \
    od;                                                                                                                \
    skip

#ifdef RELEASE_ON_NEW_CONNECTION
#define connection_to_follow(a) current
#else
#define connection_to_follow(a) on[a]
#endif

proctype Request(byte a) {
    d_step {
        printf("request %d begins on connection %d\n", a, current);
        on[a] = current;
        collect(on[a], SET(a))
    }
    do
    :: d_step { /* The lock was held for a time. The reply has arrived, so no order is needed. */
        reply[a] == DONE ->
        printf("request %d releases on connection %d\n", a, current);
        must_release[a] = true;
        left[a] = true;
        collect(current, RELEASE(a))
    }
        break
    :: d_step { reply[a] == REFUSED -> left[a] = true }
        break
    :: d_step {
        reply[a] == NOSCRIPT && !broken[on[a]] ->
        printf("request %d sends its SET again\n", a);
        reply[a] = NONE;
        collect(on[a], SET(a))
    }
    :: d_step { reply[a] == NOSCRIPT -> left[a] = true }
        break
    :: d_step { /* The connection is broken. */
        reply[a] == NONE && broken[on[a]] ->
        printf("request %d leaves\n", a);
        left[a] = true;
        if
        :: unknown[a] ->
            must_release[a] = true;
            collect(current, RELEASE(a))
        :: else
        fi
    }
        break
    :: d_step { /* The SET was not written. */
        reply[a] == NONE && !broken[on[a]] && !written[a] ->
        printf("request %d removes its SET\n", a);
        left[a] = true;
#ifndef COUNTED_AS_NOT_SENT
        buffer[on[a]] ?? eval(SET(a));
#ifndef ENTRY_STAYS_ALONE
        list[on[a]] ?? eval(SET(a))
#endif
#endif
    }
        break
    :: d_step { /* The SET was written, or stays in the buffer. */
        reply[a] == NONE && !broken[on[a]] ->
        printf("request %d leaves; its release goes on connection %d\n", a, connection_to_follow(a));
        left[a] = true;
        must_release[a] = true;
#ifdef ENTRY_REMOVED
        list[on[a]] ?? eval(SET(a));
#endif
        collect(connection_to_follow(a), RELEASE(a))
    }
        break
    od
}

/* The library: whichever thread or loop does it. */
proctype Connection(byte c) {
    byte command, entry, result;
end:
    do
    :: d_step {
        !broken[c] && nempty(buffer[c]) ->
        buffer[c] ? command;
        to_server[c] ! command;
        if
        :: !is_release(command) -> written[owner(command)] = true
        :: else
        fi;
        printf("    connection %d: command %d is written\n", c, command);
        command = 0
    }
    :: d_step {
        !broken[c] && nempty(to_client[c]) ->
        to_client[c] ? command, result;
        printf("    connection %d: reply %d to command %d\n", c, result, command);
        assert(nempty(list[c]));
        list[c] ? entry;
        if
        :: !is_release(entry) -> written[owner(entry)] = false
        :: else
        fi;
        assert(entry == command); /* otherwise the reply is delivered to the wrong request */
        if
        :: is_release(entry) && result != NOSCRIPT -> released[owner(entry)] = true
        :: is_release(entry) && result == NOSCRIPT ->
#ifdef NOSCRIPT_LOSES_RELEASE
            released[owner(entry)] = true
#else
            collect(c, entry)
#endif
        :: !is_release(entry) && !left[owner(entry)] -> reply[owner(entry)] = result
        :: else ->
#ifdef REPEATED_AFTER_RELEASE
            if
            :: result == NOSCRIPT -> collect(c, entry)
            :: else
            fi
#else
            skip
#endif
        fi;
        command = 0;
        entry = 0;
        result = 0
    }
    :: d_step {
        c + 1 < CONNECTIONS && current == c ->
        printf("connection %d is given up\n", c);
        current++
    }
    :: d_step {
        c + 1 < CONNECTIONS && current >= c && !broken[c] && (nempty(list[c]) || current == c) ->
        printf("connection %d BREAKS\n", c);
        broken[c] = true;
        if
        :: current == c -> current++
        :: else
        fi;
        lose_replies(c);
        do
        :: nempty(list[c]) ->
            list[c] ? entry;
            if
            :: is_release(entry) ->
#ifdef RELEASES_ARE_LOST
                released[owner(entry)] = true
#else
                collect(current, entry)
#endif
            :: !is_release(entry) && written[owner(entry)] -> unknown[owner(entry)] = true
            :: else
            fi
        :: empty(list[c]) -> break
        od;
        empty_out(buffer[c]);
        entry = 0
    }
#ifdef CLOSED_EARLY
#define has_release(a) (!written[a] || is_listed(c, RELEASE(a)))
    :: d_step {
        current > c && !broken[c] && nempty(list[c]) && empty(buffer[c]) && has_release(0) && has_release(1) ->
        printf("connection %d is closed\n", c);
        broken[c] = true;
        lose_replies(c);
        do
        :: nempty(list[c]) ->
            list[c] ? entry;
            if
            :: is_release(entry) -> released[owner(entry)] = true
            :: else
            fi
        :: empty(list[c]) -> break
        od;
        entry = 0
    }
#endif
    od
}

#define ANSWER(c, command, result)                                                                                     \
    if                                                                                                                 \
    :: !broken[c] -> to_client[c] ! command, result                                                                    \
    :: else                                                                                                            \
    fi
proctype Server(byte c) {
    byte command;
end:
    do
    :: d_step {
        nempty(to_server[c]) ->
        to_server[c] ? command;
        printf("        the server executes command %d\n", command);
        if
        :: !is_release(command) && key == NOBODY ->
            key = owner(command);
            ANSWER(c, command, DONE)
        :: !is_release(command) && key != NOBODY -> ANSWER(c, command, REFUSED)
        :: is_release(command) && key == owner(command) ->
            key = NOBODY;
            ANSWER(c, command, DONE)
        :: else -> ANSWER(c, command, REFUSED)
        fi;
        command = 0
    }
    :: d_step {
        nempty(to_server[c]) && noscripts < NOSCRIPTS ->
        noscripts++;
        to_server[c] ? command;
        printf("        the server does not know the script of command %d\n", command);
        ANSWER(c, command, NOSCRIPT);
        command = 0
    }
    :: d_step { /* The bytes never arrive. */
        broken[c] && nempty(to_server[c]) ->
        empty_out(to_server[c])
    }
    od
}

#if REQUESTS == 2
#define all(what) (what(0) && what(1))
#else
#define all(what) (what(0) && what(1) && what(2))
#endif
#define has_ended(a) left[a]
#define has_released(a) (!must_release[a] || released[a])
#ifdef WITNESS /* false on purpose: a release overtakes its SET if the connection breaks */
#define is_excused(a) false
#else
#define is_excused(a) unknown[a]
#endif
#define is_gone(a) (key != (a) || is_excused(a))

init {
    byte i;
    atomic {
        for (i : 0 .. REQUESTS - 1) { run Request(i) }
        for (i : 0 .. CONNECTIONS - 1) {
            run Connection(i);
            run Server(i)
        }
        i = 0
    }
    timeout -> /* Nothing can happen any more. */
    assert(all(has_ended));
    assert(all(has_released));
    assert(all(is_gone))
}
