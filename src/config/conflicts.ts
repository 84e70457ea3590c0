/** Finds options that contradict each other, although each of them is valid. */
import { isLoopback, isLoopbackUrl } from '#lib/ip-addresses.ts'
import { nearestName } from '#lib/nearest-name.ts'
import type { ListenAddress } from '#lib/option-types.ts'
import { hostnamePattern } from '#model/patterns.ts'

const prefix = 'INLET_'

/** The options that rules are about. One that is invalid is missing. */
type Values = {
  readonly objectStore?: string
  readonly s3Credentials?: string
  readonly workerUser?: { readonly uid: number; readonly gid: number } | null
  readonly bucketsGroup?: number | null
  readonly dnsProvider?: string | null
  readonly dnsServer?: ListenAddress | null
  readonly dnsTsigSecret?: string | null
  readonly dnsRoute53ZoneId?: string | null
  readonly baseDomain?: string | null
  readonly baseUrl?: string | null
  readonly certificates?: string | null
  readonly allowPlaintext?: string
  readonly nodeApiListen?: ListenAddress
  readonly nodeApiCertificateFile?: string | null
  readonly controlUrl?: string | null
  readonly leaveSecondsMin?: number
  readonly leaveSecondsMax?: number
}

/** Returns a sentence for each conflict. `from` is what the values were read from. */
export function findConflicts(values: Values, from: Readonly<Record<string, string | undefined>>): readonly string[] {
  const problems: string[] = []
  for (const name of ['INLET_S3_ENDPOINT', 'INLET_S3_CREDENTIALS', 'INLET_S3_BUCKETS', 'INLET_S3_REGION', 'INLET_STS_ENDPOINT']) {
    if (from[name] && values.objectStore === 'directory') problems.push(`${name}: needs INLET_OBJECT_STORE=s3`)
  }
  if (from['INLET_STS_ENDPOINT'] && values.objectStore === 's3' && values.s3Credentials === 'own')
    problems.push('INLET_STS_ENDPOINT: no role is assumed with INLET_S3_CREDENTIALS=own; leave out one of both')
  if (from['INLET_S3_BUCKETS'] && values.s3Credentials === 'roles')
    problems.push('INLET_S3_BUCKETS: needs INLET_S3_CREDENTIALS=own; with roles the owner of each bucket decides')
  for (const name of ['INLET_COPY_S3_ENDPOINT', 'INLET_COPY_REGION', 'INLET_COPY_ACCESS_KEY_ID', 'INLET_COPY_SECRET_ACCESS_KEY'])
    if (from[name] && !from['INLET_COPY_URL']?.startsWith('s3:'))
      problems.push(`${name}: needs INLET_COPY_URL=s3://bucket/prefix`)
  if (!from['INLET_COPY_ACCESS_KEY_ID'] !== !from['INLET_COPY_SECRET_ACCESS_KEY'])
    problems.push('INLET_COPY_ACCESS_KEY_ID and INLET_COPY_SECRET_ACCESS_KEY: set both or neither')
  const provider = ['INLET_OIDC_ISSUER', 'INLET_OIDC_CLIENT_ID', 'INLET_OIDC_CLIENT_SECRET']
  const unset = provider.filter((name) => !from[name])
  if (unset.length > 0 && unset.length < provider.length)
    problems.push(`${unset.join(', ')}: set all of ${provider.join(', ')} or none`)
  const issuer = from['INLET_OIDC_ISSUER']
  if (issuer?.startsWith('http:') && !isLoopbackUrl(issuer))
    problems.push(
      'INLET_OIDC_ISSUER: whoever is in between could sign in as anybody; use https://, or a provider on this machine',
    )
  for (const setting of ['INLET_TLS', 'INLET_CONTROL', 'INLET_NODE_API']) {
    const [certificate, key] = [`${setting}_CERTIFICATE_FILE`, `${setting}_KEY_FILE`]
    if (!from[certificate] !== !from[key]) problems.push(`${certificate} and ${key}: set both or neither`)
  }
  return [
    ...problems,
    ...plaintextProblems(values),
    ...workerUserProblems(values),
    ...dnsProblems(values),
    ...leaveProblems(values),
  ]
}

/** A worker must not be able to read what Inlet or its readers can. */
function workerUserProblems(values: Values): readonly string[] {
  const { workerUser, bucketsGroup } = values
  if (workerUser === undefined || workerUser === null) return []
  if (workerUser.uid === 0) return ['INLET_WORKER_USER: must not be root; name a user that owns nothing else']
  if (workerUser.gid !== bucketsGroup) return []
  return ['INLET_WORKER_USER: its group is INLET_BUCKETS_GROUP, whose members read all buckets; name another group']
}

/** A setting that the provider does not use is a mistake, too: somebody expects an effect. */
function dnsProblems(values: Values): readonly string[] {
  const { dnsProvider, baseDomain, dnsServer, dnsTsigSecret, dnsRoute53ZoneId } = values
  const uses = [
    { env: 'INLET_DNS_SERVER', value: dnsServer, needed: ['rfc2136'], allowed: ['static'] },
    { env: 'INLET_DNS_TSIG_SECRET', value: dnsTsigSecret, needed: ['rfc2136'], allowed: [] },
    { env: 'INLET_DNS_ROUTE53_ZONE_ID', value: dnsRoute53ZoneId, needed: ['route53'], allowed: [] },
  ]
  const problems = uses.flatMap(({ env, value, needed, allowed }) => {
    const isNeeded = needed.some((provider) => provider === dnsProvider)
    const isAllowed = isNeeded || allowed.some((provider) => provider === dnsProvider)
    if (value === null && isNeeded) return [`${env}: INLET_DNS_PROVIDER=${dnsProvider} needs it`]
    if (value == null || isAllowed) return []
    return [`${env}: needs INLET_DNS_PROVIDER=${[...needed, ...allowed].join(' or ')}`]
  })
  if (dnsProvider == null || (baseDomain != null && hostnamePattern.test(baseDomain))) return problems
  return [...problems, 'INLET_BASE_DOMAIN: must be a domain such as ingest.example.com, because INLET_DNS_PROVIDER is set']
}

function leaveProblems({ leaveSecondsMin = 0, leaveSecondsMax = 0 }: Values): readonly string[] {
  return leaveSecondsMin <= leaveSecondsMax ? [] : ['INLET_LEAVE_SECONDS_MIN: must not be more than INLET_LEAVE_SECONDS_MAX']
}

/** Messages between nodes and control contain credentials: beyond loopback they must be encrypted. */
function plaintextProblems(values: Values): readonly string[] {
  const { allowPlaintext, nodeApiListen, nodeApiCertificateFile, controlUrl, certificates, baseUrl } = values
  if (allowPlaintext === 'true') return []
  const allowed = 'or INLET_ALLOW_PLAINTEXT=true if the network is encrypted by other means'
  const problems: string[] = []
  const isIssued = certificates != null && certificates !== 'control' && baseUrl?.startsWith('https:') === true
  if (nodeApiListen !== undefined && nodeApiCertificateFile === null && !isIssued && !isLoopback(nodeApiListen.host)) {
    const { host, port } = nodeApiListen
    problems.push(
      `INLET_NODE_API_LISTEN: nodes would send their credentials to ${host}:${port} in plaintext; set INLET_NODE_API_CERTIFICATE_FILE and INLET_NODE_API_KEY_FILE, or INLET_CERTIFICATES and an INLET_BASE_URL with https://, ${allowed}`,
    )
  }
  const url = URL.parse(controlUrl ?? '')
  if (url?.protocol === 'http:' && !isLoopbackUrl(url.href)) {
    problems.push(`INLET_CONTROL_URL: the credential of this node would pass in plaintext; use https://, ${allowed}`)
  }
  return problems
}

/** Returns a sentence about each variable that looks like an option and is none. */
export function findUnknownOptions(names: readonly string[], known: ReadonlySet<string>): readonly string[] {
  const looksLikeOption = (name: string) => name.startsWith(prefix) || known.has(name.toUpperCase())
  return names.filter((name) => looksLikeOption(name) && !known.has(name)).map((name) => explainUnknown(name, known))
}

function explainUnknown(name: string, known: ReadonlySet<string>): string {
  // Compared without the prefix, which makes any two options look alike.
  const meant = nearestName(
    name.toUpperCase().slice(prefix.length),
    [...known].map((other) => other.slice(prefix.length)),
  )
  return `${name}: unknown option${meant === undefined ? '' : `; did you mean ${prefix}${meant}?`}`
}
