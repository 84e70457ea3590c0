/** Finds settings in which control processes of one database differ: then a client would get another answer from each of them. */
import { createHash } from 'node:crypto'
import type { Keyring } from '#lib/keyring.ts'
import type { Logger } from '#lib/telemetry.ts'
import { replaceSecret } from '#store/installation-secrets.ts'
import type { Store } from '#store/store.ts'

/** Options in which control processes must agree: each of them may lead, and any of them may handle a call. */
export const comparedOptions = [
  ...(['baseDomain', 'certificates', 'acmeDirectory', 'dnsProvider', 'dnsServer', 'dnsTtlSeconds', 'dnsRoute53ZoneId'] as const),
  ...([
    'objectStore',
    's3Endpoint',
    's3Credentials',
    's3Buckets',
    's3Region',
    'stsEndpoint',
    'awsPrincipalArn',
    'commitsKeptDays',
    'auditKeptDays',
  ] as const),
  ...(['apiRequestsPerMinute', 'exchangeRequestsPerMinute', 'addressRequestsPerMinute'] as const),
  ...(['oidcIssuer', 'oidcClientId', 'oidcClientSecret', 'oidcRole'] as const),
]

export type ComparedSettings = {
  readonly store: Store
  readonly keyring: Keyring
  readonly logger: Logger
  /** By the name of the variable; null if it is not set. Each has a form in JSON. */
  readonly settings: Readonly<Record<string, unknown>>
}

/**
 * Compares the settings with those of the control process that started before, and logs each one that differs. A setting that is being
 * changed differs once. Only digests are stored.
 */
export async function reportSettingDifferences({ store, keyring, logger, settings }: ComparedSettings): Promise<void> {
  const digests = Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, digestOf(value)]))
  const stored = await replaceSecret(store, keyring, 'settings', JSON.stringify(digests))
  const before = JSON.parse(stored ?? '{}') as Readonly<Record<string, string>>
  for (const [name, digest] of Object.entries(digests)) {
    if (before[name] !== undefined && before[name] !== digest) {
      logger.warn({ setting: name }, 'setting differs from that of the control process that started before: all need the same')
    }
  }
}

function digestOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('base64url')
}
