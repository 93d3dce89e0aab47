#include "support/redis_model.hpp"

#include "support/lua_scripts.hpp"
#include "support/redis_words.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace redlock::support {
namespace {

RedisReply no_such_script() {
    return RedisReply::of_error("NOSCRIPT No matching script. Please use EVAL.");
}

RedisReply does_not_compile(const LuaScripts::Script& script) {
    return error("Error compiling script (new function): " + script.error);
}

RedisReply unknown(RedisModel::Words words) {
    constexpr std::size_t longest = 128;
    std::string arguments;
    for (const auto word : words.subspan(1))
        if (arguments.size() < longest)
            arguments += "'" + std::string{word.substr(0, longest - arguments.size())} + "' ";
    return error("unknown command '" + std::string{words[0].substr(0, longest)} +
                 "', with args beginning with: " + arguments);
}

}  // namespace

// ---- The commands

struct RedisModel::Command {
    enum class Effect { none, writes, writes_more };

    std::string_view name;
    RedisReply (RedisModel::*execute)(Words);
    int arity;  // number of words; negative: that many at least
    bool in_scripts = true;
    Effect effect = Effect::none;

    bool takes(std::size_t words) const noexcept {
        const auto count = static_cast<int>(words);
        return arity < 0 ? count >= -arity : count == arity;
    }
};

const RedisModel::Command* RedisModel::command_of(std::string_view name) {
    constexpr auto writes = Command::Effect::writes, more = Command::Effect::writes_more;
    static constexpr std::array commands{
        Command{"evalsha", &RedisModel::evalsha, -3, false},
        Command{"get", &RedisModel::get, 2},
        Command{"set", &RedisModel::set, -3, true, more},
        Command{"exists", &RedisModel::exists, -2},
        Command{"pttl", &RedisModel::pttl, 2},
        Command{"time", &RedisModel::time, 1},
        Command{"del", &RedisModel::del, -2, true, writes},
        Command{"pexpire", &RedisModel::pexpire, -3, true, writes},
        Command{"pexpireat", &RedisModel::pexpireat, -3, true, writes},
        Command{"eval", &RedisModel::eval, -3, false},
        Command{"auth", &RedisModel::auth, -2, false},
        Command{"flushall", &RedisModel::flushall, -1, true, writes},
        Command{"info", &RedisModel::info, -1},
        Command{"ping", &RedisModel::ping, -1},
        Command{"rpush", &RedisModel::rpush, -3, true, more},
        Command{"publish", &RedisModel::publish, 3},
        Command{"pubsub", &RedisModel::pubsub, -2},
        Command{"script", &RedisModel::script, -2, false},
        Command{"select", &RedisModel::select, 2},
        Command{"type", &RedisModel::type, 2},
        Command{"zadd", &RedisModel::zadd, -4, true, more},
        Command{"zcard", &RedisModel::zcard, 2},
        Command{"zcount", &RedisModel::zcount, 4},
        Command{"zpopmin", &RedisModel::zpopmin, 2, true, writes},
        Command{"zrange", &RedisModel::zrange, -4},
        Command{"zrank", &RedisModel::zrank, 3},
        Command{"zrem", &RedisModel::zrem, -3, true, writes},
        Command{"zremrangebyscore", &RedisModel::zremrangebyscore, 4, true, writes},
        Command{"zscore", &RedisModel::zscore, 3},
    };
    const auto* const command =
        std::ranges::find_if(commands, [&](const Command& it) { return is(name, it.name); });
    return command == commands.end() ? nullptr : command;
}

RedisReply RedisModel::execute(Words words, Time now) {
    now_ = now;
    const auto* const command = command_of(words[0]);
    if (!command) return unknown(words);
    if (!command->takes(words.size())) return wrong_arity(command->name);
    script_has_written_ = false;
    if (lacks_memory_for(*command)) return out_of_memory();
    return (this->*command->execute)(words);
}

RedisReply RedisModel::execute(const std::vector<std::string>& words, Time now) {
    return execute(std::vector<std::string_view>{words.begin(), words.end()}, now);
}

RedisReply RedisModel::call_from_script(Words words) {
    const auto* const command = command_of(words[0]);
    if (!command) return error("Unknown Redis command called from script");
    if (!command->takes(words.size())) return error("Wrong number of args calling Redis command from script");
    if (!command->in_scripts) return error("This Redis command is not allowed from script");
    if (!forbidden_.empty() && is(command->name, forbidden_))
        return error("The user executing the script can't run this command or subcommand");
    if (lacks_memory_for(*command)) return out_of_memory();
    if (command->effect != Command::Effect::none) script_has_written_ = true;
    return (this->*command->execute)(words);
}

bool RedisModel::lacks_memory_for(const Command& command) const noexcept {
    return out_of_memory_ && command.effect == Command::Effect::writes_more && !script_has_written_;
}

void RedisModel::restart(const std::string& run_id, Keys keys) {
    run_id_ = filled_up(run_id);
    keys_ = std::move(keys);
    scripts_.clear();
}

void RedisModel::promote(Keys keys) {
    master_replid_ = filled_up(master_replid_ + "'" + std::to_string(++promotions_));
    replica_ = false;
    keys_ = std::move(keys);
}

// ---- Keys

std::int64_t RedisModel::now_ms() const noexcept {
    return std::chrono::floor<std::chrono::milliseconds>(now_).count();
}

const RedisModel::Value* RedisModel::find(std::string_view key, Time now) const {
    const auto entry = keys_.find(key);
    if (entry == keys_.end()) return nullptr;
    const auto& value = entry->second;
    const bool expired = value.expiry != Value::never &&
                         std::chrono::floor<std::chrono::milliseconds>(now).count() > value.expiry;
    return expired ? nullptr : &value;
}

RedisModel::Value* RedisModel::live(std::string_view key) {
    const auto entry = keys_.find(key);
    if (entry == keys_.end()) return nullptr;
    if (find(key, now_)) return &entry->second;
    keys_.erase(entry);  // for good: a clock that is set back does not revive it
    return nullptr;
}

RedisReply RedisModel::get(Words words) {
    const auto* const value = live(words[1]);
    if (!value) return {};
    return value->is_string() ? RedisReply::of_bulk(value->text) : wrong_type();
}

RedisReply RedisModel::set(Words words) {
    bool absent_only = false;
    std::optional<std::string_view> ttl;
    for (std::size_t i = 3; i < words.size(); ++i) {
        if (is(words[i], "nx"))
            absent_only = true;
        else if (is(words[i], "px") && i + 1 < words.size())
            ttl = words[++i];
        else
            return syntax_error();
    }
    auto expiry = Value::never;
    if (ttl) {
        const auto span = integer_in(*ttl);
        if (!span) return not_an_integer();
        if (*span <= 0 || *span > std::numeric_limits<std::int64_t>::max() - now_ms())
            return invalid_expiry("set");
        expiry = now_ms() + *span;
    }
    if (absent_only && live(words[1])) return {};
    keys_.insert_or_assign(std::string{words[1]}, Value{.text = std::string{words[2]}, .expiry = expiry});
    return ok();
}

RedisReply RedisModel::rpush(Words words) {
    auto* value = live(words[1]);
    if (value && value->elements == 0) return wrong_type();
    if (!value) value = &(keys_[std::string{words[1]}] = {});
    value->elements += words.size() - 2;
    return RedisReply::of_integer(static_cast<long long>(value->elements));
}

RedisReply RedisModel::del(Words words) {
    long long deleted = 0;
    for (const auto key : words.subspan(1)) {
        if (!live(key)) continue;
        keys_.erase(keys_.find(key));
        ++deleted;
    }
    return RedisReply::of_integer(deleted);
}

RedisReply RedisModel::exists(Words words) {
    return RedisReply::of_integer(
        std::ranges::count_if(words.subspan(1), [&](auto key) { return live(key); }));
}

RedisReply RedisModel::type(Words words) {
    const auto* const value = live(words[1]);
    if (!value) return RedisReply::of_status("none");
    return RedisReply::of_status(value->is_string() ? "string" : value->elements > 0 ? "list" : "zset");
}

RedisReply RedisModel::pttl(Words words) {
    const auto* const value = live(words[1]);
    if (!value) return RedisReply::of_integer(-2);
    return RedisReply::of_integer(value->expiry == Value::never ? -1 : value->expiry - now_ms());
}

RedisReply RedisModel::pexpire(Words words) {
    const auto ttl = integer_in(words[2]);
    if (words.size() > 3) return error("Unsupported option " + std::string{words[3]});
    if (!ttl) return not_an_integer();
    if (*ttl > std::numeric_limits<std::int64_t>::max() - now_ms()) return invalid_expiry("pexpire");
    return expire_at(words[1], now_ms() + *ttl);
}

RedisReply RedisModel::pexpireat(Words words) {
    const auto instant = integer_in(words[2]);
    if (words.size() > 3) return error("Unsupported option " + std::string{words[3]});
    return instant ? expire_at(words[1], *instant) : not_an_integer();
}

RedisReply RedisModel::expire_at(std::string_view key, std::int64_t instant) {
    auto* const value = live(key);
    if (!value) return RedisReply::of_integer(0);
    if (instant > now_ms())
        value->expiry = instant;
    else
        keys_.erase(keys_.find(key));
    return RedisReply::of_integer(1);
}

RedisReply RedisModel::flushall(Words words) {
    if (words.size() > 2 || (words.size() == 2 && !is(words[1], "async") && !is(words[1], "sync")))
        return syntax_error();
    keys_.clear();
    return ok();
}

RedisReply RedisModel::time(Words) {
    return RedisReply::of_array({RedisReply::of_bulk(std::to_string(now_.count() / 1'000'000)),
                                 RedisReply::of_bulk(std::to_string(now_.count() % 1'000'000))});
}

RedisReply RedisModel::publish(Words words) {
    const auto heard = publish_ ? publish_(words[1], words[2]) : std::size_t{0};
    if (!heard) return RedisReply::of_error("NOPERM No permissions to access a channel");
    return RedisReply::of_integer(static_cast<long long>(*heard));
}

/// NUMSUB alone.
RedisReply RedisModel::pubsub(Words words) {
    if (!is(words[1], "numsub")) return error("unknown subcommand");
    if (!count_listeners_) return RedisReply::of_error("NOPERM this user has no permissions to run 'pubsub'");
    std::vector<RedisReply> counts;
    for (const auto channel : words.subspan(2)) {
        counts.push_back(RedisReply::of_bulk(std::string{channel}));
        counts.push_back(RedisReply::of_integer(static_cast<long long>(count_listeners_(channel))));
    }
    return RedisReply::of_array(std::move(counts));
}

// ---- Scripts

RedisReply RedisModel::eval(Words words) {
    return run_script(words, [&] { return &LuaScripts::of_this_thread().compile(words[1]); });
}

RedisReply RedisModel::evalsha(Words words) {
    if (words[1].size() != 40) return no_such_script();
    return run_script(words, [&]() -> const LuaScripts::Script* {
        const auto known = scripts_.find(lower(words[1]));
        if (known == scripts_.end()) return nullptr;
        return &LuaScripts::of_this_thread().compile(known->second, known->first);
    });
}

template <class Find>
RedisReply RedisModel::run_script(Words words, Find find_script) {
    const auto keys = integer_in(words[2]);
    if (!keys) return not_an_integer();
    if (*keys > static_cast<std::int64_t>(words.size()) - 3)
        return error("Number of keys can't be greater than number of args");
    if (*keys < 0) return error("Number of keys can't be negative");
    const LuaScripts::Script* const script = find_script();
    if (!script) return no_such_script();
    if (!script->error.empty()) return does_not_compile(*script);
    if (!scripts_.contains(script->sha1)) scripts_.emplace(script->sha1, script->text);
    const auto count = static_cast<std::size_t>(*keys);
    return LuaScripts::of_this_thread().run(*script, words.subspan(3, count), words.subspan(3 + count),
                                            [this](Words called) { return call_from_script(called); });
}

RedisReply RedisModel::script(Words words) {
    if (!is(words[1], "load"))
        return error("unknown subcommand '" + std::string{words[1]} + "'. Try SCRIPT HELP.");
    if (words.size() != 3) return wrong_arity("script|load");
    const auto& script = LuaScripts::of_this_thread().compile(words[2]);
    if (!script.error.empty()) return does_not_compile(script);
    scripts_.emplace(script.sha1, script.text);
    return RedisReply::of_bulk(script.sha1);
}

// ---- What clients ask at first

RedisReply RedisModel::auth(Words words) {
    if (words.size() > 3) return syntax_error();
    if (words.size() == 2)
        return error(
            "AUTH <password> called without any password configured for the default user. Are you sure your "
            "configuration is correct?");
    if (words[1] == "default") return ok();
    return RedisReply::of_error("WRONGPASS invalid username-password pair or user is disabled.");
}

RedisReply RedisModel::info(Words words) {
    const auto asked = [&](std::string_view section) {
        return words.size() == 1 ||
               std::ranges::any_of(words.subspan(1), [&](auto it) { return is(it, section); });
    };
    std::string text;
    if (asked("server"))
        text += "# Server\r\nredis_version:7.0.15\r\nrun_id:" + run_id_ +
                "\r\nconfig_file:/etc/redis/role:master/master_replid:none.conf\r\n";
    if (asked("replication"))
        text += (text.empty() ? "" : "\r\n") + std::string{"# Replication\r\nrole:"} +
                (replica_ ? "slave" : "master") + "\r\nmaster_replid:" + master_replid_ + "\r\n";
    return RedisReply::of_bulk(std::move(text));
}

RedisReply RedisModel::ping(Words words) {
    if (words.size() > 2) return wrong_arity("ping");
    return words.size() == 2 ? RedisReply::of_bulk(std::string{words[1]}) : RedisReply::of_status("PONG");
}

RedisReply RedisModel::select(Words words) {
    constexpr int databases = 16;
    const auto index = integer_in(words[1]);
    if (!index) return not_an_integer();
    return *index >= 0 && *index < databases ? ok() : error("DB index is out of range");
}

}  // namespace redlock::support
