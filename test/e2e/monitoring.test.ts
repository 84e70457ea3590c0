/** Prometheus reads the metrics of running processes, and the files for it fit them. Needs promtool for its syntax. */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { describeWith } from '../support/deployment.ts'
import { Installation } from '../support/installation.ts'
import { isThorough } from '../support/thorough.ts'
import { until } from '../support/until.ts'

const root = resolve(import.meta.dirname, '../..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const metricsToken = 'a-secret-of-the-operator'

/** Only with a base domain, a DNS service or TLS. */
const conditional = [
  'inlet_certificate_failed_orders',
  'inlet_certificate_remaining_seconds',
  'inlet_dns_changes_total',
  'inlet_dns_pending_changes',
]

const definition = {
  columns: [
    { name: 'id', type: 'INTEGER', path: '$.id', required: true },
    { name: 'at', type: 'TIMESTAMP', path: '$.at', cast_failures: 'dlq' },
  ],
}
const lines = ['{"id":1}', '{"id":2,"at":"soon"}', '{"at":"2026-11-20T08:00:00Z"}', '{']

type Panel = {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly description?: string
  readonly datasource?: { readonly uid: string }
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly targets?: readonly { readonly refId: string; readonly expr: string }[]
}
type Alert = { readonly alert: string; readonly expr: string; readonly annotations: Readonly<Record<string, string>> }

const { panels, templating } = JSON.parse(read('deploy/grafana/inlet.json')) as {
  readonly panels: readonly Panel[]
  readonly templating: { readonly list: readonly { readonly name: string; readonly type: string }[] }
}
const { groups } = parse(read('deploy/prometheus/rules.yaml')) as { groups: readonly { rules: readonly Alert[] }[] }
const alerts = groups.flatMap(({ rules }) => rules)
/** With values for the variables of Grafana. */
const queries = panels
  .flatMap(({ targets = [] }) => targets)
  .map(({ expr }) => expr.replaceAll('$__rate_interval', '5m').replaceAll('$__range', '3h').replaceAll('$instance', '.*'))

const hasPromtool = spawnSync('promtool', ['--version']).error === undefined
// CI has it: .ci/counterparts installs it.
const promtool = test.skipIf(!hasPromtool && !isThorough)
if (!hasPromtool) console.warn('promtool is missing: what it checks is skipped; .ci/counterparts installs it')

describeWith('processes', 'monitoring', () => {
  const copyStore = mkdtempSync(join(tmpdir(), 'inlet-copies-'))
  let installation: Installation
  let control: Scrape
  let ingest: Scrape

  beforeAll(async () => {
    const environment = { INLET_METRICS_TOKEN: metricsToken, INLET_COPY_URL: `file://${copyStore}` }
    installation = await Installation.create({ environment })
    await installation.start('start')
    const { id, viewId } = await installation.endpoint({ bucket: 'monitored', view: { name: 'strict', definition } })
    expect(await installation.ingest(id, `${lines.join('\n')}\n`)).toMatchObject({ status: 202 })
    expect(await installation.ingest(id, '')).toMatchObject({ status: 422 })
    await until('the commit, and a heartbeat of delivery', async () => {
      control = await scrape(installation.apiUrl)
      return control.value('inlet_commits_total') === 1 && control.value('inlet_delivery_cpu_seconds_total') > 0
    })
    ingest = await scrape(installation.ingestUrl)
    expect(control.text).toContain(`view_id="${viewId}"`)
  }, 120_000)
  afterAll(async () => {
    await installation[Symbol.asyncDispose]()
    rmSync(copyStore, { recursive: true })
  })

  test('records are counted once on their way, and rejected rows by view and code', () => {
    expect(ingest.value('inlet_ingest_records_total')).toBe(4)
    expect(ingest.value('inlet_ingest_ack_seconds_count', 'protocol="http"')).toBe(1)
    expect(ingest.value('inlet_wal_fsync_seconds_count')).toBeGreaterThanOrEqual(2)
    expect(control.value('inlet_delivered_records_total')).toBe(4)
    expect(control.value('inlet_commit_delay_seconds_count')).toBe(1)
    expect(control.value('inlet_ack_to_commit_seconds_count')).toBe(1)
    // It also has the time until the seal.
    const delay = control.value('inlet_commit_delay_seconds_sum')
    expect(control.value('inlet_ack_to_commit_seconds_sum')).toBeGreaterThan(delay)
    expect(control.value('inlet_view_records_total', 'outcome="accepted"')).toBe(1)
    expect(control.value('inlet_view_records_total', 'outcome="dlq"')).toBe(3)
    for (const code of ['cast_failed', 'missing_required', 'invalid_json']) {
      expect(control.value('inlet_dlq_rows_total', `code="${code}"`)).toBe(1)
      expect(control.value('inlet_view_dlq_rows_total', 'view="strict",version="1"', `code="${code}"`)).toBe(1)
    }
    for (const type of ['segment', 'parquet', 'view', 'dlq', 'marker'])
      expect(control.value('inlet_delivered_object_bytes_total', `type="${type}"`)).toBeGreaterThan(0)
    expect(control.value('inlet_nodes', 'state="healthy"')).toBe(1)
  })

  test('a long poll is not measured as a request', () => {
    expect(control.value('inlet_control_request_duration_seconds_count', 'route="/internal/v1/heartbeat"')).toBeGreaterThan(0)
    expect(control.text).not.toContain('route="/internal/v1/snapshot"')
  })

  test('every process says its version, and how long its event loop was held', () => {
    const { version } = JSON.parse(read('package.json')) as { version: string }
    for (const { text } of [control, ingest]) {
      expect(text).toContain(`inlet_build_info{version="${version}"`)
      for (const name of ['nodejs_eventloop_lag_p50', 'nodejs_eventloop_lag_p99', 'inlet_event_loop_delay_max'])
        expect(text).toMatch(new RegExp(`^${name}_seconds\\{.*\\} [\\d.e-]+$`, 'm'))
    }
    for (const name of ['p50', 'p99', 'max'])
      expect(control.value(`inlet_delivery_event_loop_delay_${name}_seconds`)).toBeGreaterThanOrEqual(0)
  })

  test('docs/monitoring.md describes every metric of Inlet as a server does, and no other', () => {
    const documented = [...read('docs/monitoring.md').matchAll(/^\| `(inlet_\w+).*?` \| (.*) \|$/gm)]
    const rows = documented.map(([, name = '', rest = '']) => `${name} | ${rest}`).toSorted()
    const exposed = [...control.described, ...ingest.described].filter((row) => row.startsWith('inlet_'))
    const isConditional = (row: string) => conditional.some((name) => row.startsWith(`${name} |`))
    expect(rows.filter((row) => !isConditional(row))).toEqual([...new Set(exposed)].toSorted())
    expect(rows.filter(isConditional)).toHaveLength(conditional.length)
  })

  promtool('promtool finds nothing wrong with names, types and help', () => {
    for (const { text } of [control, ingest]) expect(runPromtool(['check', 'metrics'], text)).toEqual({ status: 0, output: '' })
  })

  test.each([
    ['the dashboard', queries],
    ['the alerts', alerts.map(({ expr }) => expr)],
  ])('every metric of %s is exposed', (_, expressions) => {
    const names = new Set(expressions.flatMap((expr) => expr.match(/\b(?:inlet|nodejs|process)_\w+/g) ?? []))
    expect(names.size).toBeGreaterThan(10)
    const exposed = new Set([...control.described, ...ingest.described].map((row) => row.split(' ')[0]))
    const isExposed = (name: string) => exposed.has(name) || exposed.has(name.replace(/_(bucket|count|sum)$/, ''))
    expect([...names].filter((name) => !isExposed(name) && !conditional.includes(name))).toEqual([])
  })

  /** The text of a process. */
  async function scrape(url: string): Promise<Scrape> {
    const response = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${metricsToken}` } })
    expect(response.status).toBe(200)
    return new Scrape(await response.text())
  }
})

describe('deploy/grafana/inlet.json', () => {
  test('each panel has a place, a description and the data source that is chosen', () => {
    expect(templating.list.find(({ type }) => type === 'datasource')?.name).toBe('datasource')
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, at) => `${x + (at % w)} ${y + Math.floor(at / w)}`),
    )
    expect(new Set(cells).size).toBe(cells.length)
    expect(panels.every(({ gridPos: { x, w } }) => x + w <= 24)).toBe(true)
    for (const { type, title, description, datasource, targets = [] } of panels.filter((panel) => panel.type !== 'row')) {
      expect([title, datasource?.uid, (description ?? '') !== ''], type).toEqual([title, `\${datasource}`, true])
      expect(targets.length, title).toBeGreaterThan(0)
      expect(new Set(targets.map(({ refId }) => refId)).size, title).toBe(targets.length)
    }
  })

  promtool('every expression is PromQL', () => {
    const rules = queries.map((expr, index) => ({ record: `panel:${index}`, expr }))
    inCopy((directory) => {
      const path = join(directory, 'dashboard.yaml')
      writeFileSync(path, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }))
      expect(runPromtool(['check', 'rules', path])).toMatchObject({ status: 0 })
    })
  })
})

describe('deploy/prometheus', () => {
  test('each alert says what happened, what to do, and where that is explained', () => {
    for (const { alert, annotations } of alerts) {
      expect(Object.keys(annotations), alert).toEqual(['summary', 'description', 'runbook'])
      const [, path = '', anchor = ''] = /^(docs\/operations\.md)#([a-z0-9-]+)$/.exec(annotations['runbook'] ?? '') ?? []
      expect(path, alert).not.toBe('')
      expect(anchorsOf(read(path)), alert).toContain(anchor)
    }
  })

  test('docs/monitoring.md lists the alerts', () => {
    const listed = [...read('docs/monitoring.md').matchAll(/^\| `(Inlet\w+)`/gm)].map(([, name]) => name)
    expect(listed).toEqual(alerts.map(({ alert }) => alert))
  })

  promtool('every alert fires in its case, and is silent while all is well', () => {
    const tests = parse(read('deploy/prometheus/rules-test.yaml')) as {
      tests: readonly { alert_rule_test: readonly { alertname: string; exp_alerts: readonly unknown[] }[] }[]
    }
    const cases = tests.tests.flatMap(({ alert_rule_test }) => alert_rule_test)
    for (const { alert } of alerts) {
      const fires = cases.filter(({ alertname }) => alertname === alert).map(({ exp_alerts }) => exp_alerts.length > 0)
      expect(fires.toSorted(), alert).toEqual([false, true])
    }
    expect(runPromtool(['test', 'rules', 'deploy/prometheus/rules-test.yaml'])).toMatchObject({ status: 0 })
  })

  promtool('the example of a configuration is accepted, with its rules', () => {
    inCopy((directory) => {
      writeFileSync(join(directory, 'inlet-metrics-token'), metricsToken)
      const { status, output } = runPromtool(['check', 'config', join(directory, 'prometheus.yaml')])
      expect({ status, output }).toMatchObject({ status: 0 })
      expect(output).toContain(`${alerts.length} rules found`)
    })
  })
})

/** Calls back with a copy of deploy/prometheus, which is removed afterwards. */
function inCopy(use: (directory: string) => void): void {
  const directory = mkdtempSync(join(tmpdir(), 'inlet-prometheus-'))
  try {
    cpSync(join(root, 'deploy/prometheus'), directory, { recursive: true })
    use(directory)
  } finally {
    rmSync(directory, { recursive: true })
  }
}

/** The anchors of the headings of a page, as GitHub makes them. */
function anchorsOf(markdown: string): readonly string[] {
  return [...markdown.matchAll(/^#+ (.*)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replaceAll(/[^\w\s-]/g, '')
      .replaceAll(' ', '-'),
  )
}

class Scrape {
  readonly text: string
  /** `name | type | help` of each metric. */
  readonly described: readonly string[]

  constructor(text: string) {
    this.text = text
    const described = text.matchAll(/^# HELP (\w+) (.*)\n# TYPE \1 (\w+)$/gm)
    this.described = [...described].map(([, name, help, type]) => `${name} | ${type} | ${help}`)
  }

  /** Returns the value of the first series with these labels, NaN if there is none. */
  value(name: string, ...labels: readonly string[]): number {
    const series = this.text
      .split('\n')
      .find((line) => line.startsWith(`${name}{`) && labels.every((label) => line.includes(label)))
    return Number(series?.split(' ').at(-1) ?? Number.NaN)
  }
}

function runPromtool(args: readonly string[], input = ''): { readonly status: number | null; readonly output: string } {
  const { status, stdout, stderr } = spawnSync('promtool', args, { input, encoding: 'utf8', cwd: root })
  return { status, output: `${stdout}${stderr}`.trim() }
}
