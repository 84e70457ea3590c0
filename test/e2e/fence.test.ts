/** A node stands still, and its place is taken meanwhile: removed by an operator, or adopted from a copy of its disk. Then it goes on. */
import { cpSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Installation } from '../support/installation.ts'
import { until } from '../support/until.ts'

const processes = ['ingest', 'delivery'] as const

async function furnished() {
  const installation = await Installation.create()
  await installation.start('control', ...processes)
  // Sealed late: what is acknowledged stays on the node.
  const { id } = await installation.endpoint({ bucket: 'lake', segment_max_age_seconds: 3600 })
  const { body } = await installation.ingest(id, '{"n":1}')
  const signal = (name: NodeJS.Signals) => {
    for (const command of processes) process.kill(installation.pid(command) ?? 0, name)
  }
  const operator = async (method: string, path: string) => {
    const token = readFileSync(join(installation.directory, 'operator-token'), 'utf8').trim()
    const response = await fetch(`${installation.apiUrl}${path}`, { method, headers: { authorization: `Bearer ${token}` } })
    return { status: response.status, body: await response.json() }
  }
  const acknowledged = { records: 1 }
  /** Until the node hears of it, it acknowledges. */
  const isRefusing = async (reason: string) => {
    const { status, body } = await installation.ingest(id, '{"n":2}')
    if (status === 202) acknowledged.records += 1
    return status === 503 && body.detail.includes(reason)
  }
  const records = async () =>
    (await installation.ok('GET', `/v1/endpoints/${id}/commits`)).items.reduce(
      (sum: number, commit: { records: number }) => sum + commit.records,
      0,
    )
  return { installation, id, nodeId: body.node_id as string, signal, operator, isRefusing, acknowledged, records }
}

test('a removed node refuses data when it goes on, ends at once, and delivers what it has after it joined again', {
  timeout: 120_000,
}, async () => {
  const { installation, nodeId, signal, operator, isRefusing, acknowledged, records } = await furnished()
  await using _ = installation
  signal('SIGSTOP')
  expect((await operator('DELETE', `/v1/nodes/${nodeId}?force=true`)).status).toBe(200)
  signal('SIGCONT')
  await until('the refusal', () => isRefusing('an operator removed this node'), 15_000)
  const readiness = await fetch(`${installation.ingestUrl}/readyz`)
  expect([readiness.status, await readiness.text()]).toEqual([503, expect.stringContaining('an operator removed this node')])
  const began = performance.now()
  for (const command of processes) expect(await installation.end(command, 'SIGTERM')).toBe(0)
  expect(performance.now() - began).toBeLessThan(10_000)
  expect(installation.log).toContain('create a join token')

  // The join secret of the installation is in its directory, so a start joins again.
  await installation.start(...processes)
  await until('what was acknowledged', async () => (await records()) === acknowledged.records, 30_000)
})

test('a node whose disk was copied and adopted refuses data when it goes on', { timeout: 120_000 }, async () => {
  const { installation, id, nodeId, signal, isRefusing, records } = await furnished()
  await using _ = installation
  signal('SIGSTOP')
  const copy = join(installation.directory, 'copy')
  cpSync(join(installation.directory, 'node'), join(copy, 'node'), { recursive: true })
  const adoption = await installation.run('node', '--adopt', copy)
  expect([adoption.exitCode, adoption.log]).toEqual([
    0,
    expect.stringContaining('control refuses the machine that had this log before'),
  ])
  expect(await records()).toBe(1)
  signal('SIGCONT')
  await until('the refusal', () => isRefusing('another machine adopted the log'), 15_000)
  const commits = (await installation.ok('GET', `/v1/endpoints/${id}/commits`)).items
  expect(commits).toMatchObject([{ node_id: nodeId, records: 1 }])
  for (const command of processes) expect(await installation.end(command, 'SIGTERM')).toBe(0)
})
