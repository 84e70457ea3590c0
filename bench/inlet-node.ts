/** The unmodified ingest process for benchmarks: a key and an endpoint come from its stored snapshot, there is no control. */
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { apiKeyOf } from '#auth/secrets.ts'
import { readConfig } from '#config/config.ts'
import { startIngest } from '#ingest/app.ts'
import { systemClock } from '#lib/clock.ts'
import { createLogger } from '#lib/telemetry.ts'
import { newId } from '#model/id.ts'
import { mqttLimits, segmentLimits } from '#model/limits.ts'
import { effectiveQuotas } from '#model/quota.ts'
import type { Snapshot } from '#model/snapshot.ts'
import { snapshotLines } from '../test/support/snapshot-lines.ts'

export const benchKey = `ing_live_${'b'.repeat(32)}`

export type Running = { readonly url: string; clean(): Promise<void>; stop(): Promise<void> }

/** `url` is for HTTP. With `mqttPort` it also serves MQTT. */
export async function startInlet(
  directory: string,
  {
    mqttPort,
    copies = 1,
    settings = {},
  }: {
    readonly mqttPort?: number
    readonly copies?: number
    readonly settings?: Readonly<Record<string, string>>
  } = {},
): Promise<Running> {
  const config = readConfig({
    INLET_DATA_DIR: directory,
    INLET_NODE_TOKEN: 'n'.repeat(32),
    INLET_CONTROL_URL: 'http://127.0.0.1:1',
    INLET_INGEST_LISTEN: '127.0.0.1:0',
    INLET_LOG_LEVEL: 'error',
    ...(mqttPort === undefined ? {} : { INLET_MQTT_LISTEN: `127.0.0.1:${mqttPort}` }),
    ...settings,
  })
  const accountId = newId()
  const snapshot: Snapshot = {
    epoch: 1,
    region: 'loc',
    keys: [
      {
        id: newId(),
        account_id: accountId,
        hash: apiKeyOf(benchKey).hash,
        scopes: ['ingest'],
        endpoint_ids: null,
        origins: null,
      },
    ],
    revoked_keys: [],
    jwks: { keys: [] },
    token_issuer: 'http://127.0.0.1:1',
    certificate: null,
    endpoints: [
      {
        id: newId(),
        account_id: accountId,
        account_suspended: false,
        account_weight: 1,
        account_quotas: effectiveQuotas({}),
        ingest_host: '127.0.0.1:8081',
        desired_state: 'active',
        segment_bytes: segmentLimits.bytesDefault,
        segment_max_age_seconds: 60,
        output_formats: ['parquet'],
        kept_headers: [],
        kept_fields: [],
        copies,
        mqtt_config: {
          enabled: true,
          max_connections: mqttLimits.maxConnections.max,
          keepalive_max_s: mqttLimits.keepaliveMaxSeconds.default,
          qos_max: 1,
        },
        destination: null,
        views: [],
        committed_seq: -1,
      },
    ],
  }
  await mkdir(dirname(config.paths.ingestSnapshot), { recursive: true })
  await writeFile(config.paths.ingestSnapshot, snapshotLines(snapshot))
  const app = await startIngest(config, { logger: createLogger('bench', config.logLevel), clock: systemClock })
  return {
    url: app.url,
    // Delivery does the same once a segment is committed.
    clean: async () => {
      for (const name of await readdir(config.paths.wal, { recursive: true })) {
        if (name.endsWith('.wal')) await rm(join(config.paths.wal, name))
      }
    },
    stop: () => app.stop(AbortSignal.timeout(5_000)),
  }
}
