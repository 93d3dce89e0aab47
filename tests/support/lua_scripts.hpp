// Executes Lua scripts as Redis does: with a table `redis`, KEYS and ARGV, no other state, and the
// conversions between Lua values and replies. It compiles each text once for all simulated servers.
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
    /// The implementation of redis.call(). It is called with at least one word.
    using Call = std::function<RedisReply(Words)>;

    struct Script {
        std::string sha1;  ///< of the text, in hexadecimal
        std::string text;
        std::string error{};  ///< the compile error, if any
        int function = 0;     ///< a reference in Lua's registry
    };

    /// Returns the object of this thread, because a Lua state can be used by one thread at a time.
    static LuaScripts& of_this_thread();

    /// Returns a script that is valid as long as the thread.
    const Script& compile(std::string_view text);
    /// The same if the SHA1 is known, which is quicker.
    const Script& compile(std::string_view text, std::string_view sha1);

    /// Runs a script without compile error, and returns its result as a reply. A script cannot run another
    /// one.
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
    const Call* call_ = nullptr;  // of the running script
};

}  // namespace redlock::support
