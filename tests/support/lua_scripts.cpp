#include "support/lua_scripts.hpp"

#include "support/sha1.hpp"

#include <lua.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <new>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

// This file is linked with the variant of Lua that is compiled as C++. Its errors are exceptions, which run
// destructors.
namespace redlock::support {
namespace {

constexpr auto* chunk = "@user_script";  // the name in error messages

/// Scripts access the globals through an empty table, so that they can neither add a global nor misspell one.
constexpr auto* sandbox = R"(
    print, dofile, loadfile = nil
    local function refuse_unknown(_, name)
        error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
    end
    local function refuse_new() error("Attempt to modify a readonly table", 2) end
    setmetatable(_G, {__index = refuse_unknown})
    return setmetatable({}, {__index = _G, __newindex = refuse_new})
)";

void push_text(lua_State* lua, std::string_view text) {
    lua_pushlstring(lua, text.data(), text.size());
}

/// Pushes the table {name=text}.
void push_record(lua_State* lua, const char* name, std::string_view text) {
    lua_createtable(lua, 0, 1);
    push_text(lua, text);
    lua_setfield(lua, -2, name);
}

std::string_view text_at(lua_State* lua, int index) {
    std::size_t length = 0;
    const char* const text = lua_tolstring(lua, index, &length);
    return {text, length};
}

// ---- Conversion from Redis to Lua

void push(lua_State* lua, const RedisReply& reply) {
    using Kind = RedisReply::Kind;
    switch (reply.kind) {
        case Kind::nil: return lua_pushboolean(lua, 0);
        case Kind::status: return push_record(lua, "ok", reply.text);
        case Kind::error: return push_record(lua, "err", reply.text);
        case Kind::integer: return lua_pushnumber(lua, static_cast<lua_Number>(reply.integer));
        case Kind::bulk: return push_text(lua, reply.text);
        case Kind::array: break;
    }
    lua_createtable(lua, static_cast<int>(reply.elements.size()), 0);
    for (int i = 0; const auto& element : reply.elements) {
        push(lua, element);
        lua_rawseti(lua, -2, ++i);
    }
}

// ---- Conversion from Lua to Redis

/// Converts as a C cast does on the machines that servers run on.
long long truncated(lua_Number number) {
    constexpr auto limit = 9223372036854775808.0;
    return number >= -limit && number < limit ? static_cast<long long>(number)
                                              : std::numeric_limits<long long>::min();
}

/// Returns the text up to the first null byte, because a reply of one line ends where a C string ends.
std::string as_line(std::string_view text) {
    std::string line{text.substr(0, text.find('\0'))};
    std::ranges::replace_if(
        line, [](char c) { return c == '\r' || c == '\n'; }, ' ');
    return line;
}

/// Returns the text in a field of the table on top of the stack, if there is one.
std::optional<std::string> field(lua_State* lua, const char* name) {
    lua_getfield(lua, -1, name);
    std::optional<std::string> text;
    if (lua_type(lua, -1) == LUA_TSTRING) text = as_line(text_at(lua, -1));
    lua_pop(lua, 1);
    return text;
}

/// Pops the value on top of the stack.
RedisReply pop_reply(lua_State* lua);

RedisReply reply_of_table(lua_State* lua) {
    if (const auto error = field(lua, "err")) return RedisReply::of_error(*error);
    if (const auto status = field(lua, "ok")) return RedisReply::of_status(*status);
    luaL_checkstack(lua, 2, "a table in a table in a table");
    std::vector<RedisReply> elements;
    for (int i = 1;; ++i) {
        lua_rawgeti(lua, -1, i);
        if (lua_isnil(lua, -1)) break;
        elements.push_back(pop_reply(lua));
    }
    lua_pop(lua, 1);
    return RedisReply::of_array(std::move(elements));
}

RedisReply pop_reply(lua_State* lua) {
    RedisReply reply;
    switch (lua_type(lua, -1)) {
        case LUA_TSTRING: reply = RedisReply::of_bulk(std::string{text_at(lua, -1)}); break;
        case LUA_TNUMBER: reply = RedisReply::of_integer(truncated(lua_tonumber(lua, -1))); break;
        case LUA_TTABLE: reply = reply_of_table(lua); break;
        case LUA_TBOOLEAN:
            if (lua_toboolean(lua, -1)) reply = RedisReply::of_integer(1);
            break;
        default: break;
    }
    lua_pop(lua, 1);
    return reply;
}

/// Replaces a number by its text with all digits, as an argument of a command.
void write_out_number(lua_State* lua, int index) {
    const auto number = lua_tonumber(lua, index);
    if (const auto whole = truncated(number); static_cast<lua_Number>(whole) == number) {
        push_text(lua, std::to_string(whole));
    } else {
        std::array<char, 40> digits{};
        (void)std::snprintf(digits.data(), digits.size(), "%.17g", number);
        push_text(lua, digits.data());
    }
    lua_replace(lua, index);
}

/// Returns the arguments of redis.call(), or none if any argument has the wrong type.
std::vector<std::string_view> words_of(lua_State* lua) {
    std::vector<std::string_view> words(static_cast<std::size_t>(lua_gettop(lua)));
    for (int index = 1; auto& word : words) {
        if (lua_type(lua, index) == LUA_TNUMBER) write_out_number(lua, index);
        if (lua_type(lua, index) != LUA_TSTRING) return {};
        word = text_at(lua, index++);
    }
    return words;
}

RedisReply call(lua_State* lua) {
    if (lua_gettop(lua) == 0)
        return RedisReply::of_error("ERR Please specify at least one argument for this redis lib call");
    const auto words = words_of(lua);
    if (words.empty())
        return RedisReply::of_error("ERR Lua redis lib command arguments must be strings or integers");
    const auto& command = **static_cast<const LuaScripts::Call**>(lua_touserdata(lua, lua_upvalueindex(1)));
    return command(words);
}

// ---- The table `redis`

int redis_call(lua_State* lua) {
    const auto reply = call(lua);
    push(lua, reply);
    return reply.is_error() ? lua_error(lua) : 1;
}

int redis_pcall(lua_State* lua) {
    push(lua, call(lua));
    return 1;
}

int redis_error_reply(lua_State* lua) {
    std::string_view text = luaL_checkstring(lua, 1);
    if (text.starts_with('-')) text.remove_prefix(1);
    push_record(lua, "err", (text.find(' ') == text.npos ? "ERR " : "") + std::string{text});
    return 1;
}

int redis_status_reply(lua_State* lua) {
    push_record(lua, "ok", luaL_checkstring(lua, 1));
    return 1;
}

int redis_sha1hex(lua_State* lua) {
    push_text(lua, sha1_of(luaL_checkstring(lua, 1)));
    return 1;
}

// ---- Errors

/// Turns an error into the table that redis.pcall() would have returned, and adds its place.
int note_error(lua_State* lua) {
    if (lua_type(lua, 1) != LUA_TTABLE)
        push_record(lua, "err", "ERR " + (lua_isstring(lua, 1) ? std::string{text_at(lua, 1)} : "nil"));
    lua_Debug at{};
    for (int level = 1; lua_getstack(lua, level, &at) && lua_getinfo(lua, "Sl", &at); ++level) {
        if (at.source != std::string_view{chunk}) continue;
        lua_pushfstring(lua, "%s:%d", at.source, at.currentline);
        lua_setfield(lua, -2, "place");
        break;
    }
    return 1;
}

/// Pops the result of note_error().
RedisReply pop_error(lua_State* lua, const LuaScripts::Script& script) {
    auto text = field(lua, "err").value_or("ERR unknown error") + " script: " + script.sha1;
    if (const auto place = field(lua, "place")) text += ", on " + *place + ".";
    lua_pop(lua, 1);
    return RedisReply::of_error(std::move(text));
}

}  // namespace

void LuaScripts::Close::operator()(lua_State* lua) const noexcept {
    lua_close(lua);
}

LuaScripts& LuaScripts::of_this_thread() {
    thread_local LuaScripts scripts;
    return scripts;
}

LuaScripts::LuaScripts() : lua_(luaL_newstate()) {
    auto* const lua = lua_.get();
    if (!lua) throw std::bad_alloc{};
    for (const auto& [name, open] :
         {luaL_Reg{"", luaopen_base}, luaL_Reg{LUA_TABLIBNAME, luaopen_table},
          luaL_Reg{LUA_STRLIBNAME, luaopen_string}, luaL_Reg{LUA_MATHLIBNAME, luaopen_math}}) {
        lua_pushcfunction(lua, open);
        lua_pushstring(lua, name);
        lua_call(lua, 1, 0);
    }
    lua_newtable(lua);
    for (const auto& [name, function] :
         {luaL_Reg{"call", redis_call}, luaL_Reg{"pcall", redis_pcall},
          luaL_Reg{"error_reply", redis_error_reply}, luaL_Reg{"status_reply", redis_status_reply},
          luaL_Reg{"sha1hex", redis_sha1hex}}) {
        lua_pushlightuserdata(lua, &call_);
        lua_pushcclosure(lua, function, 1);
        lua_setfield(lua, -2, name);
    }
    lua_setglobal(lua, "redis");

    if (luaL_dostring(lua, sandbox)) throw std::runtime_error(lua_tostring(lua, -1));
    environment_ = luaL_ref(lua, LUA_REGISTRYINDEX);
}

const LuaScripts::Script& LuaScripts::compile(std::string_view text, std::string_view sha1) {
    const auto known = by_sha1_.find(sha1);
    return known != by_sha1_.end() ? *known->second : compile(text);
}

const LuaScripts::Script& LuaScripts::compile(std::string_view text) {
    if (const auto known = by_text_.find(text); known != by_text_.end()) return *known->second;
    auto& script = scripts_.emplace_back(Script{.sha1 = sha1_of(text), .text = std::string{text}});
    auto* const lua = lua_.get();
    if (luaL_loadbuffer(lua, text.data(), text.size(), chunk) != 0) {
        script.error = as_line(text_at(lua, -1));
        lua_pop(lua, 1);
    } else {
        lua_rawgeti(lua, LUA_REGISTRYINDEX, environment_);
        lua_setfenv(lua, -2);
        script.function = luaL_ref(lua, LUA_REGISTRYINDEX);
    }
    by_text_.emplace(script.text, &script);
    by_sha1_.emplace(script.sha1, &script);
    return script;
}

void LuaScripts::set_global(const char* name, Words words) {
    auto* const lua = lua_.get();
    lua_createtable(lua, static_cast<int>(words.size()), 0);
    for (int i = 0; const auto word : words) {
        push_text(lua, word);
        lua_rawseti(lua, -2, ++i);
    }
    lua_setglobal(lua, name);
}

RedisReply LuaScripts::run(const Script& script, Words keys, Words arguments, const Call& call) {
    auto* const lua = lua_.get();
    call_ = &call;
    lua_pushcfunction(lua, note_error);
    set_global("KEYS", keys);
    set_global("ARGV", arguments);
    lua_rawgeti(lua, LUA_REGISTRYINDEX, script.function);
    const bool failed = lua_pcall(lua, 0, 1, -2) != 0;
    auto reply = failed ? pop_error(lua, script) : pop_reply(lua);
    lua_pop(lua, 1);  // note_error
    return reply;
}

}  // namespace redlock::support
