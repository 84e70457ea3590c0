/**
 * The environment of each child of the supervisor.
 *
 * Law: a process gets only what it uses. Ingest, which reads what strangers send, has no key of the database, of the operator, or of a bucket
 * but the one with its copies.
 */
import { options } from '#config/config.ts'

export type ChildName = 'control' | 'delivery' | 'ingest'

type Environment = Readonly<Record<string, string | undefined>>

const all = ['control', 'delivery', 'ingest'] as const
const control = ['control'] as const
const ingest = ['ingest'] as const
const delivery = ['delivery'] as const
const node = ['delivery', 'ingest'] as const
const withBuckets = ['control', 'delivery'] as const
const withClients = ['control', 'ingest'] as const

/** The processes that read an option. The compiler asks for each new option. */
const readers: Readonly<Record<keyof typeof options, readonly ChildName[]>> = {
  dataDirectory: all,
  logLevel: all,
  logFormat: all,
  metricsToken: withClients,
  tracesEndpoint: node,
  tracesHeaders: node,
  tracesSampler: node,
  tracesRatio: node,
  tracesServiceName: node,
  shutdownSeconds: all,
  leaveSecondsMin: ingest,
  leaveSecondsMax: ingest,
  controlListen: withClients,
  controlCertificateFile: withClients,
  controlKeyFile: withClients,
  nodeApiListen: all,
  nodeApiCertificateFile: all,
  nodeApiKeyFile: all,
  databaseUrl: control,
  baseUrl: all,
  baseDomain: control,
  certificates: all,
  dnsProvider: control,
  dnsTtlSeconds: control,
  dnsServer: control,
  dnsNamesPerSecond: control,
  dnsTsigName: control,
  dnsTsigAlgorithm: control,
  dnsTsigSecret: control,
  dnsRoute53ZoneId: control,
  acmeDirectory: control,
  acmeEmail: control,
  acmeCaFile: control,
  bootstrapApiKey: control,
  apiRequestsPerMinute: control,
  exchangeRequestsPerMinute: control,
  oidcClientId: control,
  oidcClientSecret: control,
  oidcIssuer: control,
  oidcName: control,
  oidcRole: control,
  addressRequestsPerMinute: control,
  trustProxy: withClients,
  commitsKeptDays: control,
  auditKeptDays: control,
  awsPrincipalArn: control,
  region: withClients,
  controlUrl: node,
  controlCaFile: node,
  allowPlaintext: all,
  nodeToken: withClients,
  joinToken: ingest,
  operatorToken: control,
  secretKey: control,
  advertiseAddresses: ingest,
  ingestListen: withClients,
  reusePort: ingest,
  maxRequestBytes: ingest,
  maxInFlightBytes: ingest,
  idempotencyKeysMax: ingest,
  maxConnections: ingest,
  maxUnauthenticatedConnections: ingest,
  maxConnectionsPerAddress: ingest,
  requestTimeoutSeconds: withClients,
  corsOrigins: ingest,
  publicKeys: withClients,
  credentialLease: ingest,
  copyUrl: node,
  copyWindowMs: ingest,
  copyS3Endpoint: node,
  copyRegion: node,
  copyPathStyle: node,
  copyAccessKeyId: node,
  copySecretAccessKey: node,
  takeoverAfter: control,
  mqttListen: ingest,
  tlsCertificateFile: ingest,
  tlsKeyFile: ingest,
  diskBudgetBytes: ingest,
  diskReserveBytes: ingest,
  objectStore: withBuckets,
  bucketsGroup: withBuckets,
  s3Endpoint: withBuckets,
  s3Credentials: withBuckets,
  s3Buckets: control,
  s3Region: control,
  stsEndpoint: withBuckets,
  workerUser: withBuckets,
  deliveryParallel: delivery,
  deliveryMemoryBytes: delivery,
  dedupeBytesMax: delivery,
  scrubIntervalHours: delivery,
  scrubBytesPerSecond: delivery,
}

/** Variables of others, by name or by how the name begins, for Node, the C library, its clock in tests, and the time zone. */
const common =
  /^(PATH|HOME|TMPDIR|TZ|LANG|LC_.*|TERM|NO_COLOR|FORCE_COLOR|NODE_.*|UV_.*|MALLOC_.*|GLIBC_.*|LD_.*|FAKETIME_.*|SSL_CERT_.*|(HTTPS?|NO)_PROXY)$/i

/** Where libraries look for credentials: the AWS SDK, and the client of Postgres. */
const credentials: Readonly<Record<ChildName, RegExp | undefined>> = {
  control: /^(AWS_|PG)/,
  delivery: /^AWS_/,
  ingest: undefined,
}

/** Returns those variables that a child needs. */
export function environmentOf(child: ChildName, from: Environment): Environment {
  const read = new Set(Object.entries(options).flatMap(([name, { env }]) => (isReader(child, name) ? [env] : [])))
  return Object.fromEntries(
    Object.entries(from).filter(([name]) => read.has(name) || common.test(name) || credentials[child]?.test(name) === true),
  )
}

function isReader(child: ChildName, name: string): boolean {
  return readers[name as keyof typeof options].includes(child)
}
