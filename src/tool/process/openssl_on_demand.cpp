// Loads OpenSSL only if an address asks for TLS, because loading it takes longer than everything else that
// redlock does. This file defines each function of OpenSSL that redis/tls.cpp calls. Each definition forwards
// to the function of the same name in the library. Therefore redlock itself is not linked with OpenSSL.
#pragma GCC visibility push(hidden)  // otherwise OpenSSL would call these instead of its own
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#pragma GCC visibility pop

#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace {

/// Returns the function of this name. Throws std::runtime_error if the library is missing or lacks the
/// function.
void* find(const char* name) {
    static void* const library = ::dlopen(REDLOCK_LIBSSL, RTLD_NOW | RTLD_LOCAL);
    void* const function = library != nullptr ? ::dlsym(library, name) : nullptr;
    if (function == nullptr)
        throw std::runtime_error{std::string{"TLS (rediss://) needs OpenSSL: "} +
                                 ::dlerror()};  // NOLINT(concurrency-mt-unsafe): it is the thread's own
    return function;
}

}  // namespace

// The parameters have more descriptive names than in OpenSSL.
// NOLINTBEGIN(bugprone-macro-parentheses,readability-inconsistent-declaration-parameter-name)
#define FORWARD(result, name, parameters, arguments)                               \
    result name parameters {                                                       \
        static const auto theirs = reinterpret_cast<decltype(&name)>(find(#name)); \
        return theirs arguments;                                                   \
    }

extern "C" {
FORWARD(long, BIO_ctrl, (BIO * bio, int control, long number, void* data), (bio, control, number, data))
FORWARD(int, BIO_free, (BIO * bio), (bio))
FORWARD(BIO*, BIO_new, (const BIO_METHOD* method), (method))
FORWARD(const BIO_METHOD*, BIO_s_mem, (), ())
FORWARD(int, BIO_write, (BIO * bio, const void* bytes, int length), (bio, bytes, length))
FORWARD(void, ERR_clear_error, (), ())
FORWARD(unsigned long, ERR_get_error, (), ())
FORWARD(const char*, ERR_reason_error_string, (unsigned long error), (error))
FORWARD(int, OPENSSL_atexit, (void (*handler)()), (handler))
FORWARD(void, OPENSSL_thread_stop, (), ())
FORWARD(long, SSL_CTX_ctrl, (SSL_CTX * context, int control, long number, void* data),
        (context, control, number, data))
FORWARD(void, SSL_CTX_free, (SSL_CTX * context), (context))
FORWARD(int, SSL_CTX_load_verify_locations, (SSL_CTX * context, const char* file, const char* directory),
        (context, file, directory))
FORWARD(SSL_CTX*, SSL_CTX_new, (const SSL_METHOD* method), (method))
FORWARD(void, SSL_CTX_set_default_passwd_cb, (SSL_CTX * context, pem_password_cb* callback),
        (context, callback))
FORWARD(int, SSL_CTX_set_default_verify_paths, (SSL_CTX * context), (context))
FORWARD(decltype(SSL_CTX_set_options(nullptr, {})), SSL_CTX_set_options,
        (SSL_CTX * context, decltype(SSL_CTX_set_options(nullptr, {})) options), (context, options))
FORWARD(void, SSL_CTX_set_verify, (SSL_CTX * context, int mode, SSL_verify_cb callback),
        (context, mode, callback))
FORWARD(int, SSL_CTX_use_PrivateKey_file, (SSL_CTX * context, const char* file, int type),
        (context, file, type))
FORWARD(int, SSL_CTX_use_certificate_chain_file, (SSL_CTX * context, const char* file), (context, file))
FORWARD(int, SSL_connect, (SSL * session), (session))
FORWARD(long, SSL_ctrl, (SSL * session, int control, long number, void* data),
        (session, control, number, data))
FORWARD(void, SSL_free, (SSL * session), (session))
FORWARD(X509_VERIFY_PARAM*, SSL_get0_param, (SSL * session), (session))
FORWARD(int, SSL_get_error, (const SSL* session, int status), (session, status))
FORWARD(BIO*, SSL_get_rbio, (const SSL* session), (session))
FORWARD(long, SSL_get_verify_result, (const SSL* session), (session))
FORWARD(BIO*, SSL_get_wbio, (const SSL* session), (session))
FORWARD(SSL*, SSL_new, (SSL_CTX * context), (context))
FORWARD(int, SSL_read, (SSL * session, void* bytes, int length), (session, bytes, length))
FORWARD(int, SSL_set1_host, (SSL * session, const char* name), (session, name))
FORWARD(void, SSL_set_bio, (SSL * session, BIO* in, BIO* out), (session, in, out))
FORWARD(int, SSL_write, (SSL * session, const void* bytes, int length), (session, bytes, length))
FORWARD(const SSL_METHOD*, TLS_client_method, (), ())
FORWARD(int, X509_VERIFY_PARAM_set1_ip_asc, (X509_VERIFY_PARAM * parameters, const char* address),
        (parameters, address))
FORWARD(const char*, X509_verify_cert_error_string, (long error), (error))
}
// NOLINTEND(bugprone-macro-parentheses,readability-inconsistent-declaration-parameter-name)
