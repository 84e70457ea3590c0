import { expect, test } from 'vitest'
import { options, readConfig } from '#config/config.ts'
import { comparedOptions, reportSettingDifferences } from '#control/setting-differences.ts'
import { createLogger } from '#lib/telemetry.ts'
import { newStore } from '../support/databases.ts'
import { keyring } from '../support/keyring.ts'

test('a control process that starts with other settings says which ones, once, and keeps them to itself', async () => {
  await using store = await newStore('sqlite')
  const lines: string[] = []
  const logger = createLogger('control', null, undefined, { write: (line) => void lines.push(line) })
  const start = async (settings: Readonly<Record<string, unknown>>): Promise<readonly unknown[]> => {
    lines.length = 0
    await reportSettingDifferences({ store, keyring, logger, settings })
    return lines.map((line) => JSON.parse(line).setting)
  }
  const settings = {
    INLET_BASE_URL: 'https://inlet.example',
    INLET_OPERATOR_TOKEN: 'secret-of-the-operator',
    INLET_BASE_DOMAIN: null,
  }
  expect(await start(settings)).toEqual([])
  expect(await start(settings)).toEqual([])
  const others = { ...settings, INLET_OPERATOR_TOKEN: 'another-secret', INLET_BASE_DOMAIN: 'ingest.example' }
  expect(await start(others)).toEqual(['INLET_OPERATOR_TOKEN', 'INLET_BASE_DOMAIN'])
  expect(lines.join()).not.toContain('secret')
  expect(await start(others)).toEqual([])
  expect(await start({ ...others, INLET_API_REQUESTS_PER_MINUTE: 5 })).toEqual([])
})

test('what the leader does for all is compared: DNS, certificates, buckets and retention', () => {
  const dns = {
    INLET_DNS_PROVIDER: 'rfc2136',
    INLET_DNS_SERVER: '192.0.2.53:53',
    INLET_DNS_TSIG_SECRET: 'c2VjcmV0c2VjcmV0c2VjcmV0',
  }
  const others = { ...dns, INLET_BASE_DOMAIN: 'ingest.example.com', INLET_CERTIFICATES: 'acme', INLET_COMMITS_KEPT_DAYS: '30' }
  const [one, other] = [readConfig({}), readConfig(others)]
  const differing = comparedOptions.filter((name) => JSON.stringify(one[name]) !== JSON.stringify(other[name]))
  expect(differing.map((name) => options[name].env).toSorted()).toEqual([
    'INLET_BASE_DOMAIN',
    'INLET_CERTIFICATES',
    'INLET_COMMITS_KEPT_DAYS',
    'INLET_DNS_PROVIDER',
    'INLET_DNS_SERVER',
  ])
  expect(comparedOptions).toContain('objectStore')
})
