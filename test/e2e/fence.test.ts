/** A node stands still, and its place is taken meanwhile: removed or released by an operator, or adopted from a copy of its disk. Then it goes on. */
import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
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
  const operatorToken = () => readFileSync(join(installation.directory, 'operator-token'), 'utf8').trim()
  const operator = async (method: string, path: string, body?: object) => {
    const headers = { authorization: `Bearer ${operatorToken()}`, 'content-type': 'application/json' }
    const sent = body === undefined ? {} : { body: JSON.stringify(body) }
    const response = await fetch(`${installation.apiUrl}${path}`, { method, headers, ...sent })
    const text = await response.text()
    return { status: response.status, body: text === '' ? undefined : JSON.parse(text) }
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
  const nodeId: string = body.node_id
  type Held = { readonly items: readonly { readonly records: number }[] }
  /** Waits until delivery has reported that many records of the only segment: it counts them after its size. */
  const reported = (count: number) =>
    until(
      'the report of all records',
      async () => ((await operator('GET', `/v1/nodes/${nodeId}/segments`)).body as Held).items[0]?.records === count,
      15_000,
    )
  return { installation, id, nodeId, signal, operator, isRefusing, acknowledged, records, reported }
}

test.each([
  ['removed', '?force=true', 'an operator removed this node', 'it was removed'],
  ['released', '/credential?release=true&force=true', 'an operator released the id of this node', 'its id was released'],
])(
  'a %s node refuses data when it goes on, ends at once, and delivers what it has after it joined again',
  {
    timeout: 120_000,
  },
  async (_name, path, refusal, when) => {
    const { installation, id, nodeId, signal, operator, isRefusing, acknowledged, records, reported } = await furnished()
    await using _ = installation
    const endpoint = () => installation.ok('GET', `/v1/endpoints/${id}`)
    await reported(1)
    const stoppedAt = performance.now()
    signal('SIGSTOP')
    // They wait in the queue of its socket.
    const queued = Promise.all(Array.from({ length: 20 }, () => installation.ingest(id, '{"n":3}')))
    expect((await operator('DELETE', `/v1/nodes/${nodeId}${path}`)).status).toBeLessThan(300)
    const reasons: string = (await endpoint()).status_reasons.join('; ')
    expect(reasons).toContain(`1 acknowledged record of node ${nodeId}, from segment `)
    expect(reasons).toContain(`, and what was acknowledged later, were not delivered when ${when} at `)
    expect(reasons).toContain('bring its disk back (inlet node --adopt DIR --join-token TOKEN)')
    expect(reasons).toContain('; confirm the loss only after that (inlet losses confirm')
    await until('a pause that is no heartbeat', () => performance.now() - stoppedAt > 3_000)
    signal('SIGCONT')
    // 500 for a record that was stored when the node learned of it: it may be delivered.
    expect((await queued).map(({ status }) => status).filter((status) => ![500, 503].includes(status))).toEqual([])
    expect(await isRefusing(refusal)).toBe(true)
    const readiness = await fetch(`${installation.ingestUrl}/readyz`)
    expect([readiness.status, await readiness.text()]).toEqual([503, expect.stringContaining(refusal)])
    const began = performance.now()
    for (const command of processes) expect(await installation.end(command, 'SIGTERM')).toBe(0)
    expect(performance.now() - began).toBeLessThan(10_000)
    expect(installation.log).toContain('inlet join-tokens create')

    // The join secret of the installation is in its directory, so a start joins again.
    await installation.start(...processes)
    // The refused request may be one more: the fence may close while its record is being written.
    await until('what was acknowledged', async () => (await records()) >= acknowledged.records, 30_000)
  },
)

test('a node whose disk was copied and adopted refuses data when it goes on', { timeout: 120_000 }, async () => {
  const { installation, id, nodeId, signal, operator, isRefusing, acknowledged, records } = await furnished()
  await using _ = installation
  const copy = join(installation.directory, 'copy')
  cpSync(join(installation.directory, 'node'), join(copy, 'node'), { recursive: true })
  for (let n = 2; n <= 4; n += 1) expect((await installation.ingest(id, `{"n":${n}}`)).status).toBe(202)
  signal('SIGSTOP')
  const adoption = await installation.run('node', '--adopt', copy)
  expect([adoption.exitCode, adoption.log]).toEqual([
    0,
    expect.stringContaining('control refuses the machine that had this log before'),
  ])
  expect(await records()).toBe(1)
  // Else no one could remove the node.
  expect((await operator('GET', `/v1/nodes/${nodeId}/segments`)).body.items).toEqual([])
  signal('SIGCONT')
  await until('the refusal', () => isRefusing('another machine adopted the log'), 15_000)
  const commits = (await installation.ok('GET', `/v1/endpoints/${id}/commits`)).items
  expect(commits).toMatchObject([{ node_id: nodeId, records: 1 }])

  // It says what is nowhere else: what it acknowledged after the copy was made.
  const losses = async () => (await installation.ok('GET', '/v1/losses')).items
  await until('the loss', async () => (await losses()).length === 1, 30_000)
  const [loss] = await losses()
  expect(loss).toMatchObject({ cause: 'left_on_disk', state: 'open', endpoint_id: id, segments: 1, is_node_back: false })
  expect(loss.records).toBeGreaterThanOrEqual(acknowledged.records + 3 - 1)
  expect(await installation.ok('GET', `/v1/endpoints/${id}/receipts/${nodeId}-0`)).toMatchObject({
    ...{ state: 'delivered', loss_id: loss.id },
    reason: expect.stringContaining('not all records of the segment are delivered'),
  })
  expect((await operator('DELETE', `/v1/nodes/${nodeId}?force=true`)).status).toBe(200)
  const { status_reasons } = await installation.ok('GET', `/v1/endpoints/${id}`)
  expect(status_reasons.join()).toContain(
    'are on the disk of a machine that lost its place to another one, and may be in the bucket already: control is reading the markers; confirm the loss only after that',
  )
  for (const command of processes) expect(await installation.end(command, 'SIGTERM')).toBe(0)
})

test('a machine that starts after its disk was adopted ends at once, also with commits to report', {
  timeout: 120_000,
}, async () => {
  const { installation, id, records } = await furnished()
  await using _ = installation
  await installation.ok('PATCH', `/v1/endpoints/${id}`, { segment_max_age_seconds: 1 })
  await until('the delivery', async () => (await records()) === 1, 30_000)
  await installation.end('control', 'SIGTERM')
  expect((await installation.ingest(id, '{"n":2}')).status).toBe(202)
  const outbox = join(installation.directory, 'node/outbox')
  await until('the commit that waits', () => readdirSync(outbox).length === 1, 30_000)
  for (const command of processes) await installation.kill(command)
  const copy = join(installation.directory, 'copy')
  cpSync(join(installation.directory, 'node'), join(copy, 'node'), { recursive: true })
  await installation.start('control')
  expect((await installation.run('node', '--adopt', copy)).exitCode).toBe(0)

  const logged = installation.log.length
  for (const command of processes) installation.spawn(command)
  // A call that control refuses may be logged with the same words as its reason.
  const fenced = /"process":"(ingest|delivery)".*"msg":"another machine adopted the log/g
  await until('both refusals', () => installation.log.slice(logged).match(fenced)?.length === 2, 30_000)
  expect(readdirSync(outbox)).toHaveLength(1)
  const began = performance.now()
  for (const command of processes) expect(await installation.end(command, 'SIGTERM')).toBe(0)
  expect(performance.now() - began).toBeLessThan(10_000)
})

test('what is lost with a disk is a loss until the disk is back, and receipts tell it', { timeout: 120_000 }, async () => {
  const { installation, id, nodeId, operator, records, reported } = await furnished()
  await using _ = installation
  for (let n = 2; n <= 5; n += 1) expect((await installation.ingest(id, `{"n":${n}}`)).status).toBe(202)
  await reported(5)
  for (const command of processes) await installation.kill(command)
  const node = join(installation.directory, 'node')
  const disk = join(installation.directory, 'disk')
  mkdirSync(disk)
  renameSync(node, join(disk, 'node'))

  const { body: removal } = await operator('DELETE', `/v1/nodes/${nodeId}?force=true`)
  expect(removal).toMatchObject({ losses: 1, logs: [{ endpoint_id: id, records: 5, first_segment_seq: 0 }] })
  const losses = async () => (await installation.ok('GET', '/v1/losses')).items
  expect(await losses()).toMatchObject([{ endpoint_id: id, state: 'open', segments: 1, records: 5 }])
  const receipt = () => installation.ok('GET', `/v1/endpoints/${id}/receipts/${nodeId}-0`)
  expect(await receipt()).toMatchObject({ state: 'lost', loss_id: (await losses())[0].id })
  const { status_reasons } = await installation.ok('GET', `/v1/endpoints/${id}`)
  const [{ reported_at }] = await losses()
  expect(status_reasons.join()).toContain(
    `up to 5 acknowledged records of node ${nodeId}, from segment 0 on, as of ${reported_at}, and what was acknowledged later, were not delivered`,
  )

  const adoption = await installation.run('node', '--adopt', disk)
  expect([adoption.exitCode, adoption.log]).toEqual([0, expect.stringContaining('log adopted')])
  expect(await records()).toBe(5)
  expect(await losses()).toMatchObject([{ state: 'recovered', recovered: { segments: 1, records: 5 } }])
  expect(await receipt()).toMatchObject({
    state: 'delivered',
    keys: expect.arrayContaining([expect.stringMatching(/\.parquet$/)]),
  })
  expect((await installation.ok('GET', `/v1/endpoints/${id}`)).status_reasons.join()).not.toContain('acknowledged records')
})

test('a loss has all that was acknowledged by its time, if a node dies while it takes data', { timeout: 120_000 }, async () => {
  const { installation, id, nodeId, operator } = await furnished()
  await using _ = installation
  const acknowledgedAt: number[] = []
  let isAlive = true
  const sending = (async () => {
    while (isAlive) {
      const response = await installation.ingest(id, '{"n":2}').catch(() => undefined)
      if (response?.status === 202) acknowledgedAt.push(Date.now())
    }
  })()
  // The counts of a report are several seconds old.
  const sendingMs = () => (acknowledgedAt.at(-1) ?? 0) - (acknowledgedAt[0] ?? 0)
  await until('ten seconds of data', () => sendingMs() > 10_000, 60_000)
  for (const command of processes) await installation.kill(command)
  isAlive = false
  await sending
  renameSync(join(installation.directory, 'node'), join(installation.directory, 'lost'))
  expect((await operator('DELETE', `/v1/nodes/${nodeId}?force=true`)).status).toBe(200)

  const [loss] = (await installation.ok('GET', '/v1/losses')).items
  const before = acknowledgedAt.filter((at) => at < Date.parse(loss.reported_at)).length
  expect(before).toBeGreaterThan(0)
  expect(loss.records).toBeGreaterThanOrEqual(before)
  expect((await installation.ok('GET', `/v1/endpoints/${id}`)).status_reasons.join()).toContain(
    `up to ${loss.records} acknowledged records of node ${nodeId}, from segment 0 on, as of ${loss.reported_at}, and what was acknowledged later, `,
  )
})

test('an adoption that was stopped is continued with a join token after the node was removed', { timeout: 120_000 }, async () => {
  const { installation, nodeId, operator, records } = await furnished()
  await using _ = installation
  for (const command of processes) await installation.kill(command)
  const disk = join(installation.directory, 'disk')
  mkdirSync(disk)
  renameSync(join(installation.directory, 'node'), join(disk, 'node'))
  const away = join(installation.directory, 'away')
  renameSync(installation.buckets, away)
  writeFileSync(installation.buckets, 'no directory')
  installation.spawn('node', { args: ['--adopt', disk] })
  await until('the attempt to deliver', () => installation.log.includes('delivering the adopted log'), 60_000)
  type Held = { readonly items: readonly { readonly records: number }[] }
  const held = async () => ((await operator('GET', `/v1/nodes/${nodeId}/segments`)).body as Held).items
  await until('the report of what is left', async () => (await held())[0]?.records === 1)
  const began = performance.now()
  expect(await installation.end('node', 'SIGTERM')).toBe(0)
  expect(performance.now() - began).toBeLessThan(10_000)
  expect((await operator('DELETE', `/v1/nodes/${nodeId}?force=true`)).status).toBe(200)
  rmSync(installation.buckets)
  renameSync(away, installation.buckets)

  // A machine without the join secret of the installation.
  const other = join(installation.directory, 'other')
  mkdirSync(other)
  symlinkSync(installation.buckets, join(other, 'buckets'))
  installation.configure({ INLET_DATA_DIR: other, INLET_CONTROL_URL: installation.nodeApiUrl, INLET_REGION: 'loc' })
  const refused = await installation.run('node', '--adopt', disk)
  expect([refused.exitCode, refused.log]).toEqual([
    1,
    expect.stringContaining('an operator removed this node; create a join token'),
  ])
  const { body } = await operator('POST', '/v1/join-tokens', { name: 'rescue', region: 'loc' })
  const { join_token } = body as { readonly join_token: string }
  const adoption = await installation.run('node', '--adopt', disk, '--join-token', join_token)
  expect([adoption.exitCode, adoption.log]).toEqual([0, expect.stringContaining('control accepts the node again')])
  expect(await records()).toBe(1)
  expect((await installation.ok('GET', '/v1/losses')).items).toMatchObject([{ state: 'recovered' }])
})

test('a node that stood still accepts no revoked key after its lease, and control says how far the revocation got', {
  timeout: 120_000,
}, async () => {
  await using installation = await Installation.create({ environment: { INLET_CREDENTIAL_LEASE: '5s' } })
  await installation.start('control', ...processes)
  const { id } = await installation.endpoint({ bucket: 'lake' })
  const key = await installation.ok('POST', '/v1/keys', { name: 'till', scopes: ['ingest'] })
  const send = async () => {
    const headers = { 'x-api-key': key.api_key, 'content-type': 'application/json', connection: 'close' }
    const { status } = await fetch(`${installation.ingestUrl}/v1/ingest?endpoint=${id}`, { method: 'POST', headers, body: '1' })
    return status
  }
  const signal = (name: NodeJS.Signals, command: string) => process.kill(installation.pid(command) ?? 0, name)
  const revocation = async () => {
    const { items } = await installation.ok('GET', '/v1/keys')
    return items.find((item: { id: string }) => item.id === key.id).revocation
  }
  await until('the key on the node', async () => (await send()) === 202)
  signal('SIGSTOP', 'ingest')
  const revoked = await installation.ok('POST', `/v1/keys/${key.id}/revoke`)
  expect(revoked.revocation).toMatchObject({ applied_nodes: 0, nodes: 1, applied_at: null })
  await until(
    'the node out of reach for longer than its lease',
    async () => /^applied on 0 of 1 node; node \S+ has been out of reach for \d+ s$/.test((await revocation()).summary),
    20_000,
  )
  signal('SIGSTOP', 'control')
  signal('SIGCONT', 'ingest')
  for (let attempt = 0; attempt < 20; attempt += 1) expect(await send()).toBe(503)
  signal('SIGCONT', 'control')
  await until('the revocation on the node', async () => (await send()) === 401, 30_000)
  await until('the note', async () => (await revocation()).applied_at !== null, 20_000)
})
