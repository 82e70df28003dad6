"""Settings as keyword arguments. Made by `kclient.config.typed_dicts`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict

from kclient.config.values import Password


class ClientSettings(TypedDict, total=False):
    """Keyword arguments for the settings of every client; docs/configuration.md tells more."""

    bootstrap_resolve_timeout_ms: int
    """Default: 0. How long the names of bootstrap servers may stay unresolved; 0 is one try, when the client is made.
    Not implemented yet.
    """
    client_dns_lookup: Literal["use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"]
    """Default: 'use_all_dns_ips'. Whether all addresses of a name are tried, or bootstrap names are made canonical
    names first.
    """
    client_id: str
    """Default: ''. The name by which brokers log the client and apply quotas; empty makes one up."""
    config_providers: str | Sequence[str]
    """Default: []. The names of providers that ${provider:path:key} in values is looked up in: env, file and directory,
    as Java's, or others, whose config.providers.NAME.class is one of Java's three, or a function that returns the
    value of a path and a key.
    """
    kclient_proxy_url: str | Password | None
    """Optional. The proxy through which brokers are reached, as socks5://user:password@host:port or http://host:port;
    it resolves their names.
    """
    kclient_receive_max_bytes: int
    """Default: 104857600. The largest answer the client takes from a broker; a larger one closes the connection."""
    kclient_sasl_oauthbearer_allowed_urls: str | Sequence[str]
    """Default: []. The addresses with http: or file: that sasl.oauthbearer.token.endpoint.url may have. All with https:
    are allowed.
    """
    kclient_ssl_crl_location: str | None
    """Optional. A file with certificate revocation lists, in PEM; a broker's certificate must not be in them."""
    kclient_ssl_keylog_location: str | None
    """Optional. A file to which the secrets of connections are added, with which Wireshark reads what was captured of
    them. Whoever has it can read everything.
    """
    metadata_cluster_check_enable: bool
    """Default: True. Whether brokers are told which cluster and broker the client means to reach, so that one at
    another's address refuses the connection and the client starts again from bootstrap.servers (KIP-1242).
    """
    metadata_max_age_ms: int
    """Default: 300000. How old the picture of the cluster may become before it is fetched anew."""
    metadata_recovery_rebootstrap_trigger_ms: int
    """Default: 300000. How long metadata may not be had before the client starts again from bootstrap.servers."""
    metadata_recovery_strategy: Literal["rebootstrap", "none"]
    """Default: 'rebootstrap'. What to do when no known broker can be reached: start again from bootstrap.servers, or
    nothing.
    """
    metric_reporters: str | Sequence[object]
    """Default: []. Objects that are told of metrics as they come and go; Java's JmxReporter stands for none. Not
    implemented yet.
    """
    metrics_num_samples: int
    """Default: 2. How many windows are kept to compute a metric."""
    metrics_recording_level: Literal["INFO", "DEBUG", "TRACE"]
    """Default: 'INFO'. How detailed the recorded metrics are. Not implemented yet."""
    metrics_sample_window_ms: int
    """Default: 30000. How long one window of a metric is."""
    receive_buffer_bytes: int
    """Default: -1. The size of a socket's receive buffer; -1 leaves it to the system, which lets it grow as needed."""
    reconnect_backoff_max_ms: int
    """Default: 1000. The longest wait between connections to a broker."""
    reconnect_backoff_ms: int
    """Default: 50. The wait before the first new connection to a broker; it doubles with every failure."""
    request_timeout_ms: int
    """Default: 30000. How long to wait for an answer before the connection is given up and the request tried again."""
    retry_backoff_max_ms: int
    """Default: 1000. The longest wait before a failed request is sent again."""
    retry_backoff_ms: int
    """Default: 100. The wait before a failed request is sent again; it doubles with every failure."""
    sasl_client_callback_handler_class: object
    """Optional. An object that answers the SASL client's questions for credentials. Not implemented yet."""
    sasl_jaas_config: str | Password | None
    """Optional. The login module with its options, in Java's JAAS notation: PlainLoginModule or ScramLoginModule with
    username and password, OAuthBearerLoginModule, which may have clientId, clientSecret and scope, or
    Krb5LoginModule with principal and keyTab, or with ticketCache.
    """
    sasl_kerberos_kinit_cmd: str
    """Default: '/usr/bin/kinit'. The path of Kerberos' kinit command. For the JVM only."""
    sasl_kerberos_min_time_before_relogin: int
    """Default: 60000. How long a login thread waits at least between two refreshes of a ticket. For the JVM only."""
    sasl_kerberos_service_name: str | None
    """Optional. The name under which the brokers run in Kerberos."""
    sasl_kerberos_ticket_renew_jitter: float
    """Default: 0.05. The random part added to the time of a renewal. For the JVM only."""
    sasl_kerberos_ticket_renew_window_factor: float
    """Default: 0.8. The part of a ticket's lifetime after which it is renewed. For the JVM only."""
    sasl_login_callback_handler_class: object
    """Optional. For OAUTHBEARER, a function that returns a token: an OAuthBearerToken, or a JWT as str. It is called
    for the first time when the client is made, and later by a thread of its own. The name of Java's
    OAuthBearerLoginCallbackHandler is accepted as well.
    """
    sasl_login_class: object
    """Optional. An object that does the login. Not implemented yet."""
    sasl_login_connect_timeout_ms: int | None
    """Optional. How long a connection to the identity provider may take."""
    sasl_login_read_timeout_ms: int | None
    """Optional. How long an answer of the identity provider may take."""
    sasl_login_refresh_buffer_seconds: int
    """Default: 300. How long before its expiry a credential is refreshed at the latest, in seconds."""
    sasl_login_refresh_min_period_seconds: int
    """Default: 60. How long to wait at least before a credential is refreshed, in seconds."""
    sasl_login_refresh_window_factor: float
    """Default: 0.8. The part of a credential's lifetime after which it is refreshed."""
    sasl_login_refresh_window_jitter: float
    """Default: 0.05. The random part, of the credential's lifetime, added to the time of a refresh."""
    sasl_login_retry_backoff_max_ms: int
    """Default: 10000. The longest wait between tries with the identity provider."""
    sasl_login_retry_backoff_ms: int
    """Default: 100. The wait before the first new try with the identity provider."""
    sasl_mechanism: str
    """Default: 'GSSAPI'. The SASL mechanism: GSSAPI, PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER. Not
    implemented yet.
    """
    sasl_oauthbearer_allow_unverified_audience: bool
    """Default: False. Whether tokens are accepted without a check of their audience. Not implemented yet."""
    sasl_oauthbearer_allow_unverified_issuer: bool
    """Default: False. Whether tokens are accepted without a check of their issuer. Not implemented yet."""
    sasl_oauthbearer_assertion_algorithm: Literal["RS256", "ES256"]
    """Default: 'RS256'. The algorithm that assertions are signed with."""
    sasl_oauthbearer_assertion_claim_aud: str | None
    """Optional. The audience that assertions name."""
    sasl_oauthbearer_assertion_claim_exp_seconds: int
    """Default: 300. How long assertions are valid, in seconds."""
    sasl_oauthbearer_assertion_claim_iss: str | None
    """Optional. The issuer that assertions name."""
    sasl_oauthbearer_assertion_claim_jti_include: bool
    """Default: False. Whether assertions carry an id of their own."""
    sasl_oauthbearer_assertion_claim_nbf_seconds: int
    """Default: 60. How long before now assertions begin to be valid, in seconds."""
    sasl_oauthbearer_assertion_claim_sub: str | None
    """Optional. The subject that assertions name."""
    sasl_oauthbearer_assertion_file: str | None
    """Optional. A file with a ready assertion."""
    sasl_oauthbearer_assertion_private_key_file: str | None
    """Optional. The private key that assertions are signed with."""
    sasl_oauthbearer_assertion_private_key_passphrase: str | Password | None
    """Optional. The passphrase of that private key."""
    sasl_oauthbearer_assertion_template_file: str | None
    """Optional. A JSON file with further claims for assertions."""
    sasl_oauthbearer_client_credentials_client_id: str | None
    """Optional. The client's id at the identity provider."""
    sasl_oauthbearer_client_credentials_client_secret: str | Password | None
    """Optional. The client's secret at the identity provider."""
    sasl_oauthbearer_clock_skew_seconds: int
    """Default: 30. How far clocks may be apart when a token's times are checked, in seconds. Not implemented yet."""
    sasl_oauthbearer_expected_audience: str | Sequence[str]
    """Default: []. The audiences of which a token must name one. Not implemented yet."""
    sasl_oauthbearer_expected_issuer: str | None
    """Optional. The issuer that a token must name. Not implemented yet."""
    sasl_oauthbearer_header_urlencode: bool
    """Default: False. Whether id and secret are URL-encoded in the request's header."""
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int
    """Default: 3600000. How long those keys are kept before they are fetched again. Not implemented yet."""
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: int
    """Default: 10000. The longest wait between tries to fetch those keys. Not implemented yet."""
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: int
    """Default: 100. The wait before the first new try to fetch those keys. Not implemented yet."""
    sasl_oauthbearer_jwks_endpoint_url: str | None
    """Optional. The address of the keys that tokens are signed with. Not implemented yet."""
    sasl_oauthbearer_jwt_retriever_class: object
    """Default: 'org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever'. The way to get a JWT: a function
    that returns it, an object with such a function as `retrieve`, or the name of Java's DefaultJwtRetriever,
    ClientCredentialsJwtRetriever, JwtBearerJwtRetriever or FileJwtRetriever. The default one reads a file where the
    token endpoint is one, and asks with client credentials where it is not.
    """
    sasl_oauthbearer_jwt_validator_class: object
    """Default: 'org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator'. An object that checks the token. Not
    implemented yet.
    """
    sasl_oauthbearer_scope: str | None
    """Optional. The scope to ask for with the token."""
    sasl_oauthbearer_scope_claim_name: str
    """Default: 'scope'. The claim of the token that holds the scope. Not implemented yet."""
    sasl_oauthbearer_sub_claim_name: str
    """Default: 'sub'. The claim of the token that holds the subject."""
    sasl_oauthbearer_token_endpoint_url: str | None
    """Optional. The address that tokens are requested from, or a file: that has one."""
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
    """Default: 'PLAINTEXT'. Whether connections use TLS, SASL or both."""
    security_providers: str | None
    """Optional. Classes that make Java's security providers. For the JVM only."""
    send_buffer_bytes: int
    """Default: -1. The size of a socket's send buffer; -1 leaves it to the system, which lets it grow as needed."""
    socket_connection_setup_timeout_max_ms: int
    """Default: 30000. How long setting up a connection may take at most."""
    socket_connection_setup_timeout_ms: int
    """Default: 10000. How long setting up a connection may take at first; it doubles with every failure."""
    ssl_cipher_suites: str | Sequence[str]
    """Default: []. The cipher suites of TLS 1.2 that connections may use, by the names of IANA or OpenSSL; empty leaves
    the choice to OpenSSL, as it always has it for TLS 1.3.
    """
    ssl_enabled_protocols: str | Sequence[str]
    """Default: ['TLSv1.2', 'TLSv1.3']. The TLS versions that connections may use: TLSv1.2, TLSv1.3 or both."""
    ssl_endpoint_identification_algorithm: str
    """Default: 'https'. How the host name is checked against the broker's certificate: https; empty turns the check
    off.
    """
    ssl_engine_factory_class: object
    """Optional. An object that makes the TLS contexts instead of the settings here. Not implemented yet."""
    ssl_key_password: str | Password | None
    """Optional. The password of the client's own private key."""
    ssl_keymanager_algorithm: str
    """Default: 'SunX509'. The algorithm of Java's key manager factory. For the JVM only."""
    ssl_keystore_certificate_chain: str | Password | None
    """Optional. The client's own certificate and those of its issuers, as PEM text."""
    ssl_keystore_key: str | Password | None
    """Optional. The client's own private key itself, as PEM text."""
    ssl_keystore_location: str | None
    """Optional. The file with the client's own key and certificates. Read again for new connections when it changes."""
    ssl_keystore_password: str | Password | None
    """Optional. The password of the file with the client's own key."""
    ssl_keystore_type: str
    """Default: 'JKS'. The format of the client's own key and certificates: PEM, PKCS12 or JKS. What a file holds
    decides, whatever is said here.
    """
    ssl_protocol: str
    """Default: 'TLSv1.3'. The newest TLS version that connections may use: TLSv1.2, TLSv1.3, or TLS for the newest
    there is.
    """
    ssl_provider: str | None
    """Optional. The name of Java's security provider for TLS. For the JVM only."""
    ssl_secure_random_implementation: str | None
    """Optional. The name of Java's random number generator for TLS. For the JVM only."""
    ssl_trustmanager_algorithm: str
    """Default: 'PKIX'. The algorithm of Java's trust manager factory. For the JVM only."""
    ssl_truststore_certificates: str | Password | None
    """Optional. The trusted certificates themselves, as PEM text."""
    ssl_truststore_location: str | None
    """Optional. The file with the certificates of the authorities to trust; without it those of the system are trusted.
    Read again for new connections when it changes.
    """
    ssl_truststore_password: str | Password | None
    """Optional. The password of the file with the trusted certificates."""
    ssl_truststore_type: str
    """Default: 'JKS'. The format of the trusted certificates: PEM, PKCS12 or JKS. What a file holds decides, whatever
    is said here.
    """
