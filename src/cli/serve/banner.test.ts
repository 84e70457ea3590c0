import { describe, expect, test } from 'vitest'
import { readConfig } from '#config/config.ts'
import { newId } from '#model/id.ts'
import { type BannerOptions, formatBanner } from './banner.ts'

const config = readConfig({})
const key = `ing_live_${'k'.repeat(32)}`
const first = { api_key: key, endpoint_id: newId(), segment_max_age_seconds: 60 }

function lines(options: Partial<BannerOptions> = {}): readonly string[] {
  const paint: BannerOptions['paint'] = (_, text) => text
  return formatBanner({
    config,
    children: ['control', 'delivery', 'ingest'],
    bootstrapped: first,
    firstKey: { key },
    firstLink: { url: 'http://127.0.0.1:8080/sign-in#link=abc' },
    paint,
    ...options,
  }).split('\n')
}

describe('the banner', () => {
  test('leads with the link into the console', () => {
    const [, title, , row] = lines()
    expect([title, row]).toEqual(['  Inlet is running.', '  Console          http://127.0.0.1:8080/sign-in#link=abc'])
    expect(lines({ firstLink: undefined }).join('\n')).toContain('  Console          http://127.0.0.1:8080/\n')
  })

  test('shows the key and a line to paste at the first start, and afterwards how to make a key', () => {
    const start = lines().join('\n')
    expect(start).toContain(`-H 'X-API-Key: ${key}'`)
    expect(start).toContain(`/v1/ingest?endpoint=${first.endpoint_id}'`)
    expect(start).toContain('After about 60 seconds it is stored as Parquet')
    const later = lines({ bootstrapped: undefined }).join('\n')
    expect(later).not.toContain('curl')
    for (const text of [start, later]) expect(text).toContain('npm run inlet -- keys create --name laptop --scope ingest')
  })

  test('says where the first record gets to', () => {
    const on = (settings: Record<string, string>) =>
      lines({ config: readConfig({ INLET_OBJECT_STORE: 's3', ...settings }) }).join('\n')
    expect(on({ INLET_S3_CREDENTIALS: 'own', INLET_S3_BUCKETS: 'lake/events' })).toContain('as Parquet under s3://lake/events')
    expect(on({})).toContain('until the endpoint has a destination')
  })

  test('names the file that has the key where there is no terminal, also in the line to paste', () => {
    const text = lines({ firstKey: { path: "/srv/it's/first-api-key" } }).join('\n')
    expect(text).toContain("API key          /srv/it's/first-api-key")
    expect(text).toContain(`-H "X-API-Key: $(cat '/srv/it'\\''s/first-api-key')"`)
    expect(text).not.toContain('ing_live_')
  })

  test('takes the key of the operator from the environment', () => {
    const text = lines({ bootstrapped: { ...first, api_key: null }, firstKey: undefined }).join('\n')
    expect(text).toContain('-H "X-API-Key: $INLET_BOOTSTRAP_API_KEY"')
    expect(text).not.toContain('ing_live_')
  })

  test('fits 100 columns, and 80 but for the line to paste', () => {
    const short = config.paths.data.length
    for (const line of lines())
      expect(line.length - (line.includes(config.paths.data) ? short : 0), line).toBeLessThanOrEqual(100)
    for (const line of lines({ bootstrapped: undefined })) {
      if (!line.includes(config.paths.data)) expect(line.length, line).toBeLessThanOrEqual(80)
    }
  })

  test('names addresses that clients can connect to', () => {
    const open = readConfig({
      INLET_CONTROL_LISTEN: '0.0.0.0:8080',
      INLET_INGEST_LISTEN: '[::]:8081',
      INLET_MQTT_LISTEN: '0.0.0.0:1883',
    })
    const text = lines({ config: open }).join('\n')
    for (const url of ['http://127.0.0.1:8080/', 'http://[::1]:8081/v1/ingest', 'mqtt://127.0.0.1:1883'])
      expect(text).toContain(url)
    const behind = readConfig({ INLET_BASE_URL: 'https://inlet.example.com' })
    expect(lines({ config: behind })).toContain('  Management API   https://inlet.example.com/v1')
  })

  test('says which root clients have to trust', () => {
    const development = readConfig({ INLET_CERTIFICATES: 'development', INLET_BASE_DOMAIN: 'localhost' })
    const root = development.paths.developmentCa
    const text = lines({ config: development }).join('\n')
    expect(text).toContain(`Root certificate ${root}`)
    expect(text).toContain(`curl --cacert '${root}' -X POST 'https://127.0.0.1:8081/v1/ingest`)
    expect(lines().join('\n')).not.toContain('Root certificate')
  })

  test('of a node names the control that it uses', () => {
    const remote = readConfig({ INLET_CONTROL_URL: 'https://inlet.example.com', INLET_NODE_TOKEN: 't'.repeat(32) })
    const text = lines({ config: remote, children: ['delivery', 'ingest'], bootstrapped: undefined }).join('\n')
    expect(text).toContain('Control          https://inlet.example.com')
    expect(text).not.toMatch(/Management API|keys create/)
  })
})
