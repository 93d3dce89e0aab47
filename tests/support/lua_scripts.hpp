// Lua scripts as Redis runs them: a table `redis`, KEYS and ARGV, no other state, and its conversions between
// values of Lua and replies. A text is compiled once, however many servers are simulated.
#pragma once

#include "support/redis_reply.hpp"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct lua_State;

namespace redlock::support {

class LuaScripts {
public:
    using Words = std::span<const std::string_view>;
    /// What redis.call() does. Called with at least one word.
    using Call = std::function<RedisReply(Words)>;

    struct Script {
        std::string sha1;  ///< of its text, in hexadecimal
        std::string text;
        std::string error{};  ///< why it does not compile; empty: it does
        int function = 0;     ///< where Lua keeps it
    };

    /// Lua is used by one thread at a time: each has its own.
    static LuaScripts& of_this_thread();

    /// Valid as long as the thread.
    const Script& compile(std::string_view text);
    /// The same where the SHA1 is known, which is quicker.
    const Script& compile(std::string_view text, std::string_view sha1);

    /// Its result as a reply. `script` has no error. One at a time: no script runs another.
    RedisReply run(const Script& script, Words keys, Words arguments, const Call& call);

private:
    LuaScripts();

    void set_global(const char* name, Words words);

    struct Close {
        void operator()(lua_State* lua) const noexcept;
    };
    std::unique_ptr<lua_State, Close> lua_;
    std::deque<Script> scripts_{};
    std::map<std::string_view, const Script*> by_text_{};
    std::map<std::string_view, const Script*> by_sha1_{};
    int environment_ = 0;         // the globals that scripts see
    const Call* call_ = nullptr;  // of the script that runs
};

}  // namespace redlock::support
