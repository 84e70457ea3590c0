import { resolve } from 'node:path'
import { GiB, KiB, MiB } from '#lib/bytes.ts'
import {
  address,
  addresses,
  buckets,
  bytes,
  choice,
  database,
  integer,
  matching,
  type Option,
  OptionError,
  option,
  optional,
  proxies,
  secret,
  secretKeys,
  serviceUrl,
  text,
  url,
  user,
} from '#lib/option-types.ts'
import { UserError } from '#lib/user-error.ts'
import { nodeLimits } from '#model/limits.ts'
import { apiKeyPattern, hostnamePattern, joinTokenPattern, regionPattern } from '#model/patterns.ts'
import { findConflicts, findUnknownOptions } from './conflicts.ts'
import { copyOptions } from './copies.ts'
import { dataPaths } from './data-paths.ts'
import { deliveryOptions } from './delivery.ts'
import { scrubOptions } from './scrub.ts'
import { senderOptions } from './senders.ts'
import { tracesOptions } from './traces.ts'

/**
 * All options: environment variable, type, default, bounds and help line. The configuration is read once and frozen.
 * `docs/configuration.md` is generated from this table.
 */
export const options = {
  dataDirectory: option(
    'INLET_DATA_DIR',
    './data',
    (path) => resolve(path),
    'directory for everything that this installation stores on disk',
  ),
  logLevel: option(
    'INLET_LOG_LEVEL',
    '',
    optional(choice(['debug', 'info', 'notice', 'warn', 'error', 'silent'])),
    'minimum level of log lines; empty: `info`, or `notice` for `inlet start` and `inlet node` on a terminal, which print a summary themselves',
  ),
  logFormat: option(
    'INLET_LOG_FORMAT',
    '',
    optional(choice(['text', 'json'])),
    'form of log lines: `text` for people or `json` for machines; empty: `text` if standard output and standard error are a terminal',
  ),
  metricsToken: option(
    'INLET_METRICS_TOKEN',
    '',
    optional(secret(16)),
    'secret for `/metrics` of control and ingest (`Authorization: Bearer`). With a secret the metrics also have labels for endpoints and MQTT user names; empty: open to everyone, totals only',
  ),
  ...tracesOptions,
  shutdownSeconds: option(
    'INLET_SHUTDOWN_SECONDS',
    '20',
    integer(1, 600),
    'maximum time of a shutdown after SIGTERM, in seconds; undelivered data stays on disk',
  ),
  leaveSecondsMin: option(
    'INLET_LEAVE_SECONDS_MIN',
    '0',
    integer(0, 600),
    'minimum time for which ingest goes on serving after SIGTERM, before the shutdown, while `/readyz` is 503: time for load balancers to notice, in seconds',
  ),
  leaveSecondsMax: option(
    'INLET_LEAVE_SECONDS_MAX',
    '120',
    integer(0, 600),
    'maximum time for which ingest goes on serving after SIGTERM, before the shutdown, until DNS no longer leads clients to it, in seconds',
  ),

  controlListen: option('INLET_CONTROL_LISTEN', '127.0.0.1:8080', address, 'host:port of the management API'),
  controlCertificateFile: option(
    'INLET_CONTROL_CERTIFICATE_FILE',
    '',
    optional((path) => resolve(path)),
    'PEM file with the certificate chain of the management API, reloaded when it changes; empty: as INLET_CERTIFICATES says, else no TLS',
  ),
  controlKeyFile: option(
    'INLET_CONTROL_KEY_FILE',
    '',
    optional((path) => resolve(path)),
    'PEM file with the private key of that certificate',
  ),
  nodeApiListen: option(
    'INLET_NODE_API_LISTEN',
    '127.0.0.1:8082',
    address,
    'host:port of the API for nodes, which control serves',
  ),
  nodeApiCertificateFile: option(
    'INLET_NODE_API_CERTIFICATE_FILE',
    '',
    optional((path) => resolve(path)),
    'PEM file with the certificate chain of the API for nodes, reloaded when it changes; if it ends with the root of your own CA, join tokens pin that root; empty: as INLET_CERTIFICATES says, else no TLS',
  ),
  nodeApiKeyFile: option(
    'INLET_NODE_API_KEY_FILE',
    '',
    optional((path) => resolve(path)),
    'PEM file with the private key of that certificate',
  ),
  databaseUrl: option(
    'INLET_DATABASE_URL',
    '',
    database,
    '`postgres://…`, with standbys as in `postgres://user@db-1:5432,db-2:5432/name`, or the path of an SQLite file; empty: `<data>/inlet.db`',
  ),
  baseUrl: option(
    'INLET_BASE_URL',
    '',
    optional(url),
    'public URL of the management API, without which control uses its listen address, with `https://` if it has a certificate; a node without it uses that of control',
  ),
  baseDomain: option(
    'INLET_BASE_DOMAIN',
    '',
    optional(text),
    'domain of ingest hosts, which are `<label>.<region>.<base domain>`; empty: clients use the address of the node',
  ),
  certificates: option(
    'INLET_CERTIFICATES',
    '',
    optional(choice(['acme', 'development', 'control'])),
    'who issues certificates for control and nodes: `acme`: an ACME server such as Let’s Encrypt, by DNS-01 challenges; `development`: a CA of this installation, whose root clients have to trust; `control`: on a node of a control process elsewhere, what that one issues; empty: nobody, set files or use no TLS',
  ),
  acmeDirectory: option(
    'INLET_ACME_DIRECTORY',
    'https://acme-v02.api.letsencrypt.org/directory',
    serviceUrl,
    'directory URL of the ACME server. With INLET_CERTIFICATES=acme you accept its terms of service',
  ),
  acmeEmail: option(
    'INLET_ACME_EMAIL',
    '',
    optional(matching(/^[^\s@]+@[^\s@]+$/, 'must be an e-mail address')),
    'where the ACME server sends notices; empty: nowhere',
  ),
  acmeCaFile: option(
    'INLET_ACME_CA_FILE',
    '',
    optional((path) => resolve(path)),
    'PEM file with the certificate of the CA that signed the one of the ACME server, if that is your own; empty: the CAs that Node trusts',
  ),
  dnsProvider: option(
    'INLET_DNS_PROVIDER',
    '',
    optional(choice(['static', 'rfc2136', 'route53'])),
    'who publishes the addresses of nodes under the names of endpoints: `rfc2136` and `route53`: Inlet does, by signed dynamic updates or in Amazon Route 53; `static`: you do; empty: nobody, clients use the addresses that you give them',
  ),
  dnsTtlSeconds: option(
    'INLET_DNS_TTL_SECONDS',
    '30',
    integer(1, 86_400),
    'how long resolvers may keep a record that Inlet publishes, in seconds: also how long a node that stops waits for its clients to leave',
  ),
  dnsServer: option('INLET_DNS_SERVER', '', optional(address), 'host:port of the primary server of the zone, for `rfc2136`'),
  dnsNamesPerSecond: option(
    'INLET_DNS_NAMES_PER_SECOND',
    '',
    optional(integer(1, 10_000)),
    'endpoints whose names control looks up in a second at most, to compute their status; each takes two queries to every name server of the zone. Empty: 2500, which check 10 000 endpoints within ten seconds, or 200 with `route53`, which bills each query',
  ),
  dnsTsigName: option(
    'INLET_DNS_TSIG_NAME',
    'inlet',
    matching(hostnamePattern, 'must be the name of a key, such as inlet or inlet.example.com'),
    'name of the TSIG key that may update the zone',
  ),
  dnsTsigAlgorithm: option(
    'INLET_DNS_TSIG_ALGORITHM',
    'hmac-sha256',
    choice(['hmac-sha256', 'hmac-sha384', 'hmac-sha512', 'hmac-sha1']),
    'algorithm of that key',
  ),
  dnsTsigSecret: option(
    'INLET_DNS_TSIG_SECRET',
    '',
    optional(matching(/^[A-Za-z0-9+/]{16,}={0,2}$/, 'must be the secret of a TSIG key in base64, as tsig-keygen prints it')),
    'secret of that key, in base64',
  ),
  dnsRoute53ZoneId: option(
    'INLET_DNS_ROUTE53_ZONE_ID',
    '',
    optional(matching(/^Z[A-Z0-9]{1,31}$/, 'must be the id of a hosted zone, such as Z0123456789ABCDEFGHIJ')),
    'id of the hosted zone, for `route53`. The AWS SDK finds the credentials',
  ),
  bootstrapApiKey: option(
    'INLET_BOOTSTRAP_API_KEY',
    '',
    optional(matching(apiKeyPattern, 'must be ing_live_ and 32 letters or digits')),
    'API key to create at startup, with all scopes',
  ),
  apiRequestsPerMinute: option(
    'INLET_API_REQUESTS_PER_MINUTE',
    '1200',
    integer(1, 1_000_000),
    'management API requests per API key and minute',
  ),
  exchangeRequestsPerMinute: option(
    'INLET_EXCHANGE_REQUESTS_PER_MINUTE',
    '60',
    integer(1, 1_000_000),
    'token exchanges per client address and minute',
  ),
  addressRequestsPerMinute: option(
    'INLET_ADDRESS_REQUESTS_PER_MINUTE',
    '6000',
    integer(1, 1_000_000),
    'management API requests per client address and minute, whatever their keys',
  ),
  trustProxy: option(
    'INLET_TRUST_PROXY',
    '',
    optional(proxies),
    'load balancers whose `X-Forwarded-For` is trusted, of the management API and of ingest: IP addresses and networks such as `10.0.0.0/8`, separated by commas; empty: none',
  ),
  oidcIssuer: option(
    'INLET_OIDC_ISSUER',
    '',
    optional(serviceUrl),
    'URL of an OpenID Connect provider with which people sign in to the console; its redirect URI is `<base URL>/auth/callback/oidc`; empty: none',
  ),
  oidcClientId: option('INLET_OIDC_CLIENT_ID', '', optional(text), 'id of the client that stands for Inlet at that provider'),
  oidcClientSecret: option('INLET_OIDC_CLIENT_SECRET', '', optional(text), 'secret of that client'),
  oidcName: option('INLET_OIDC_NAME', 'single sign-on', text, 'name of that provider on the button: `Sign in with …`'),
  oidcRole: option(
    'INLET_OIDC_ROLE',
    '',
    optional(choice(['owner', 'member', 'viewer'])),
    'role in the first account of everybody whom that provider signs in; empty: only people with an invitation to the e-mail address that it verified become new people',
  ),
  commitsKeptDays: option(
    'INLET_COMMITS_KEPT_DAYS',
    '400',
    integer(30, 36_500),
    'how long the database keeps commits, with their dead letter files; files in buckets are not touched',
  ),
  auditKeptDays: option('INLET_AUDIT_KEPT_DAYS', '365', integer(1, 36_500), 'how long the database keeps audit events'),
  awsPrincipalArn: option(
    'INLET_AWS_PRINCIPAL_ARN',
    '',
    optional(
      matching(/^arn:[a-z-]+:(iam|sts)::\d{12}:\S+$/, 'must be the ARN of an IAM user, a role, or the root of an account'),
    ),
    'AWS identity of control and nodes, used in the `trust_policy` of destinations',
  ),

  region: option(
    'INLET_REGION',
    'loc',
    matching(regionPattern, 'must be a region code of three lowercase letters'),
    'region code of this node',
  ),
  controlUrl: option(
    'INLET_CONTROL_URL',
    '',
    optional(url),
    'URL of the API for nodes of control; empty: its listen address, for a node on the same machine',
  ),
  controlCaFile: option(
    'INLET_CONTROL_CA_FILE',
    '',
    optional((path) => resolve(path)),
    'PEM file with the certificate of the CA that signed the one of control, for nodes; empty: the root that the join token pins, else the CAs that Node trusts',
  ),
  allowPlaintext: option(
    'INLET_ALLOW_PLAINTEXT',
    'false',
    choice(['false', 'true']),
    '`true` allows nodes and control to speak plain HTTP beyond loopback, for a network that is encrypted by other means',
  ),
  nodeToken: option(
    'INLET_NODE_TOKEN',
    '',
    optional(secret(32)),
    'join secret, with which the nodes of one machine register at control and get credentials of their own; empty: created at the first start and stored in `<data>/node-token`',
  ),
  joinToken: option(
    'INLET_JOIN_TOKEN',
    '',
    optional(matching(joinTokenPattern, 'must be a join token as it was printed: ing_join_…')),
    'join token (`inlet join-tokens create`), with which this node registers at control once, instead of the join secret; later starts do not need it',
  ),
  operatorToken: option(
    'INLET_OPERATOR_TOKEN',
    '',
    optional(secret(32)),
    'secret of the operator for `/v1/accounts`, `/v1/nodes` and `/v1/join-tokens` of the management API (`Authorization: Bearer`); empty: created at the first start and stored in `<data>/operator-token`',
  ),
  secretKey: option(
    'INLET_SECRET_KEY',
    '',
    optional(secretKeys),
    'key that encrypts the secrets in the database: 32 bytes in base64; several, separated by commas, while it is replaced: the first encrypts, the others only decrypt; empty: created at the first start and stored in `<data>/secret-key`',
  ),
  advertiseAddresses: option(
    'INLET_NODE_ADDRESSES',
    '127.0.0.1',
    addresses(nodeLimits.addressesMax),
    'IP addresses of this node for DNS, separated by commas: those that clients reach. Loopback addresses are for trying things out on one machine',
  ),
  ingestListen: option(
    'INLET_INGEST_LISTEN',
    '127.0.0.1:8081',
    address,
    'host:port of the ingest service (HTTP, and MQTT over WebSocket)',
  ),
  reusePort: option(
    'INLET_REUSE_PORT',
    'false',
    choice(['false', 'true']),
    '`true` lets several nodes of this machine, each with a data directory of its own, listen on the same addresses: the kernel spreads connections over them',
  ),
  maxRequestBytes: option(
    'INLET_MAX_REQUEST_BYTES',
    '10MiB',
    bytes(64 * KiB, 256 * MiB),
    'maximum size of an ingest request, both compressed and decompressed',
  ),
  maxInFlightBytes: option(
    'INLET_MAX_IN_FLIGHT_BYTES',
    '128MiB',
    bytes(MiB, 16 * GiB),
    'request bytes in memory beyond which requests get 503, shared by account and endpoint',
  ),
  idempotencyKeysMax: option(
    'INLET_IDEMPOTENCY_KEYS_MAX',
    '5000000',
    integer(1_000, 1_000_000_000),
    'how many idempotency keys a node remembers at most, shared by account, and as many of lost nodes that it took over; each takes up to 35 bytes of memory, and 80 on the disk',
  ),
  maxConnections: option(
    'INLET_MAX_CONNECTIONS',
    '20000',
    integer(1, 1_000_000),
    'maximum number of ingest connections that have authenticated, shared by account',
  ),
  maxUnauthenticatedConnections: option(
    'INLET_MAX_UNAUTHENTICATED_CONNECTIONS',
    '4000',
    integer(1, 1_000_000),
    'maximum number of ingest connections without an authenticated request so far, beside the others',
  ),
  maxConnectionsPerAddress: option(
    'INLET_MAX_UNAUTHENTICATED_PER_ADDRESS',
    '1000',
    integer(1, 1_000_000),
    'maximum number of those from one client address; behind a load balancer all clients have its address: set it to INLET_MAX_UNAUTHENTICATED_CONNECTIONS there',
  ),
  requestTimeoutSeconds: option(
    'INLET_REQUEST_TIMEOUT_SECONDS',
    '60',
    integer(1, 3600),
    'maximum time for a client to send one request to ingest or the management API, in seconds',
  ),
  ...copyOptions,
  ...senderOptions,
  mqttListen: option(
    'INLET_MQTT_LISTEN',
    '',
    optional(address),
    'host:port of MQTT over TCP, in addition to WebSocket at `/mqtt` of the ingest service; empty: none',
  ),
  tlsCertificateFile: option(
    'INLET_TLS_CERTIFICATE_FILE',
    '',
    optional((path) => resolve(path)),
    'PEM file with the certificate chain for ingest and MQTT, reloaded when it changes; empty: as INLET_CERTIFICATES says, else no TLS',
  ),
  tlsKeyFile: option(
    'INLET_TLS_KEY_FILE',
    '',
    optional((path) => resolve(path)),
    'PEM file with the private key of the certificate',
  ),
  diskBudgetBytes: option(
    'INLET_DISK_BUDGET_BYTES',
    '20GiB',
    bytes(64 * MiB, 1024 * GiB),
    'WAL bytes on disk beyond which new requests get 503, shared by account and endpoint',
  ),
  diskReserveBytes: option(
    'INLET_DISK_RESERVE_BYTES',
    '256MiB',
    bytes(0, 1024 * GiB),
    'free disk space below which new requests get 503',
  ),

  objectStore: option(
    'INLET_OBJECT_STORE',
    'directory',
    choice(['directory', 's3']),
    '`directory` stores buckets as directories under `<data>/buckets`; `s3` writes to the buckets of destinations, with credentials that the AWS SDK finds (`AWS_ACCESS_KEY_ID` etc.): docs/destinations.md',
  ),
  bucketsGroup: option(
    'INLET_BUCKETS_GROUP',
    '',
    optional(integer(0, 0xffff_fffe)),
    'id of the group whose members may read `<data>/buckets` (`getent group analysts | cut -d: -f3`); empty: only the user of Inlet can',
  ),
  s3Endpoint: option(
    'INLET_S3_ENDPOINT',
    '',
    optional(serviceUrl),
    'URL of an S3 gateway; empty: AWS, in the region of each destination. Use `http://` only for a gateway on this machine or in your own network',
  ),
  s3Credentials: option(
    'INLET_S3_CREDENTIALS',
    'roles',
    choice(['roles', 'own']),
    '`roles`: Inlet assumes the role of each destination; `own`, for stores without roles (MinIO, Garage, R2, B2) or for buckets of your own: the credentials of Inlet sign every request, and an account uses only the buckets that you allow it: docs/destinations.md',
  ),
  s3Buckets: option(
    'INLET_S3_BUCKETS',
    '',
    optional(buckets),
    'with `own`: buckets that the first account may use, each with or without a prefix: `lake,archive/raw`. The first start creates a destination in the first one; each start allows those that are missing',
  ),
  s3Region: option(
    'INLET_S3_REGION',
    'us-east-1',
    matching(/^[a-z0-9-]{1,32}$/, 'must be the region of the store'),
    'region of the gateway, or with `own` of your buckets, which the console suggests for new destinations: `auto` for R2, such as `us-west-004` for B2, `garage` for Garage',
  ),
  stsEndpoint: option(
    'INLET_STS_ENDPOINT',
    '',
    optional(serviceUrl),
    'URL of the STS that assumes roles; its responses contain credentials; empty: AWS, in the region of each destination',
  ),
  workerUser: option(
    'INLET_WORKER_USER',
    '',
    optional(user),
    'user id, or user and group ids (`1001:1001`), of the processes that run previews, check definitions and convert; needs root; empty: the user of Inlet',
  ),
  ...deliveryOptions,
  ...scrubOptions,
} as const

export type Config = { readonly [Name in keyof typeof options]: (typeof options)[Name] extends Option<infer T> ? T : never } & {
  readonly paths: ReturnType<typeof dataPaths>
}

/** Environment of this process, to pass to its children. */
export const environment: Readonly<Record<string, string | undefined>> = process.env

/** Variables of commands that call an Inlet over HTTP. No options of a server, which may have them in its environment all the same. */
export const remoteVariables = ['INLET_URL', 'INLET_API_KEY', 'INLET_INGEST_URL', 'INLET_PROFILE'] as const

export class ConfigurationError extends UserError {
  override readonly name = 'ConfigurationError'
}

/** Reads all options. Throws one ConfigurationError that lists all problems. */
export function readConfig(from: Readonly<Record<string, string | undefined>> = environment): Config {
  const problems: string[] = []
  const values: Record<string, unknown> = {}
  for (const [name, { env, type, default: fallback }] of Object.entries(options)) {
    try {
      values[name] = type(from[env] || fallback)
    } catch (error) {
      if (!(error instanceof OptionError)) throw error
      problems.push(`${env}: ${error.message}`)
    }
  }
  const known = new Set<string>([...Object.values(options).map(({ env }) => env), ...remoteVariables])
  problems.push(...findUnknownOptions(Object.keys(from), known), ...findConflicts(values, from))
  if (problems.length > 0) throw new ConfigurationError(`invalid configuration:\n  ${problems.join('\n  ')}`)
  const dataDirectory = values['dataDirectory'] as string
  return Object.freeze({ ...values, paths: dataPaths(dataDirectory) }) as Config
}
