/** Attacks of a hostile or careless tenant on others, with an account and a key of its own, or without any. */
import { connect } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { MiB } from '#lib/bytes.ts'
import { previewLimits } from '#model/limits.ts'
import { attacks as controlAttacks } from './control-attacks.ts'
import { attach, Sender, type Target } from './tenants.ts'

/** Other than that of the victim. */
const attackerAddress = '127.0.0.2'

export type FairnessAttack = {
  readonly name: string
  /** Without a destination, the data of the attacker stays on the node. */
  readonly hasDestination: boolean
  /** Attacks until the signal aborts. */
  readonly run: (attacker: Target, signal: AbortSignal) => Promise<void>
}

/** Runs a step again and again, several at once. */
async function repeat(parallel: number, signal: AbortSignal, step: () => Promise<unknown>): Promise<void> {
  const worker = async () => {
    while (!signal.aborted) await step()
  }
  await Promise.all(Array.from({ length: parallel }, worker))
}

async function flood(attacker: Target, signal: AbortSignal, body: Buffer, pauseMs: number, parallel: number): Promise<void> {
  const sender = new Sender(attacker, attackerAddress)
  await repeat(parallel, signal, async () => {
    const { status } = await sender.send(body)
    // Ignores how long it is asked to wait.
    await setTimeout(status === 202 ? pauseMs : 20)
  })
  sender.close()
}

/** Sends small records to many endpoints, each over one connection: their logs all wait for the disk. */
async function floodLogs({ client }: Target, signal: AbortSignal, count: number): Promise<void> {
  await repeat(count, signal, async () => {
    const { id } = await client.ok('POST', '/v1/endpoints', { region: 'loc', segment_max_age_seconds: 1 })
    await flood({ client, endpointId: id }, signal, lineOf(100), 0, 1)
  })
}

/** Bytes that a slow client sends each second: just enough not to be disconnected. */
const drop = 'x'.repeat(2_048)

/** Opens connections that send a beginning, and then a drop now and then. Opens another one for each that is closed. */
async function hold(url: string, count: number, beginning: string, signal: AbortSignal): Promise<void> {
  const { hostname, port } = new URL(url)
  await repeat(count, signal, async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const socket = connect({ host: hostname, port: Number(port), localAddress: attackerAddress }, () => socket.write(beginning))
    const drip = setInterval(() => socket.write(drop), 1_000)
    const onAbort = () => socket.destroy()
    signal.addEventListener('abort', onAbort, { once: true })
    socket.on('error', () => undefined)
    socket.resume()
    socket.on('close', () => resolve())
    await promise
    clearInterval(drip)
    signal.removeEventListener('abort', onAbort)
    await setTimeout(500)
  })
}

function headOf({ client, endpointId }: Target, bytes: number): string {
  const lines = [
    `POST /v1/ingest?endpoint=${endpointId} HTTP/1.1`,
    'Host: ingest',
    `X-API-Key: ${client.apiKey}`,
    'Content-Type: application/x-ndjson',
    `Content-Length: ${bytes}`,
  ]
  return `${lines.join('\r\n')}\r\n\r\n`
}

const lineOf = (bytes: number) => Buffer.from(`{"n":1,"a":"${'x'.repeat(bytes - 16)}"}\n`)
const largeRecords = Buffer.concat(Array.from({ length: 3 }, () => lineOf(1_000_000)))

/** The most expensive one that is accepted: a limit of the product may refuse the others. */
async function attachExpensiveView(attacker: Target): Promise<void> {
  for (const repetitions of [1_000, 300, 100, 30, 10]) {
    const condition = `regexp_matches(a, '(x?){${repetitions}}y')`
    const columns = [{ name: 'a', type: 'VARCHAR', path: '$.a' }]
    const attached = await attach(attacker, `expensive_${repetitions}`, { columns, filters: [{ condition }] })
      .then(() => true)
      .catch(() => false)
    if (attached) return
  }
}

/** Hashes are the slowest of the functions that count as the text which they read: nearly a hundred of them are what a view may have. */
const hashes = {
  columns: [
    { name: 'a', type: 'VARCHAR', path: '$.a', hidden: true },
    ...Array.from({ length: 90 }, (_, index) => ({ name: `hash_${index}`, type: 'VARCHAR', value: 'sha256(a)' })),
  ],
}

/** Ten thousand rows of a record are the most, and each has a list that is read as JSON. */
const rows = {
  expand: '$.b[*]',
  columns: [
    { name: 'a', type: 'VARCHAR', path: '$item' },
    ...Array.from({ length: 10 }, (_, index) => ({
      name: `keys_${index}`,
      type: 'BIGINT',
      value: `len(json_keys(CAST(a AS JSON))) + ${index}`,
    })),
  ],
  sort_by: ['a'],
}

const manyRows = Buffer.from(
  `{"b":[${Array.from({ length: 9_000 }, (_, index) => `{"k${index}":1,"a":{"b":[1,2,3]}}`).join(',')}]}\n`.repeat(3),
)

/** Previews again and again, each as much as one request may ask for. */
async function previewAtBudget({ client }: Target, signal: AbortSignal): Promise<void> {
  const token = await client.accessToken()
  const samples = Array.from({ length: 100 }, () => ({ a: 'x'.repeat(60_000) }))
  const body = Buffer.from(JSON.stringify({ definition: hashes, samples }))
  // As many as may wait: further ones are refused.
  await repeat(previewLimits.perAccountMax, signal, async () => {
    await fetch(`${client.apiUrl}/v1/views/preview`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body,
      signal,
    })
      .then((response) => response.arrayBuffer())
      .catch(() => undefined)
  })
}

export const fairnessAttacks: readonly FairnessAttack[] = [
  {
    name: 'ten times the data',
    hasDestination: true,
    run: (attacker, signal) => flood(attacker, signal, Buffer.concat(Array.from({ length: 100 }, () => lineOf(1_000))), 20, 1),
  },
  {
    name: 'an endpoint without destination fills the disk',
    hasDestination: false,
    run: (attacker, signal) => flood(attacker, signal, Buffer.concat(Array.from({ length: 9 }, () => lineOf(1_000_000))), 0, 4),
  },
  {
    name: '100 endpoints with one connection each',
    hasDestination: true,
    run: (attacker, signal) => floodLogs(attacker, signal, 100),
  },
  {
    name: '90 slow bodies of 10 MiB',
    hasDestination: true,
    run: (attacker, signal) => hold(attacker.client.ingestUrl, 90, headOf(attacker, 10 * MiB) + 'x'.repeat(MiB), signal),
  },
  {
    name: '600 connections that never authenticate',
    hasDestination: true,
    run: (attacker, signal) => hold(attacker.client.ingestUrl, 600, 'POST /v1/ingest HTTP/1.1\r\nX-', signal),
  },
  {
    name: '600 connections that authenticated once',
    hasDestination: true,
    run: (attacker, signal) =>
      hold(attacker.client.ingestUrl, 600, `${headOf(attacker, 8)}{"n":1}\n${headOf(attacker, 1_000)}`, signal),
  },
  {
    name: 'a view with an expensive pattern',
    hasDestination: true,
    run: async (attacker, signal) => {
      await attachExpensiveView(attacker)
      await flood(attacker, signal, largeRecords, 300, 1)
    },
  },
  {
    name: 'views at their budget',
    hasDestination: true,
    run: async (attacker, signal) => {
      await attach(attacker, 'hashes', hashes)
      await attach(attacker, 'rows', rows)
      await Promise.all([flood(attacker, signal, largeRecords, 300, 1), flood(attacker, signal, manyRows, 300, 1)])
    },
  },
  {
    name: 'previews at their budget',
    hasDestination: true,
    run: previewAtBudget,
  },
  {
    name: 'hostile definitions',
    hasDestination: true,
    run: async ({ client }, signal) => {
      const hostile = controlAttacks.filter(({ name }) => /preview: (unknown keys$|16 MiB of names)|heavy filters/.test(name))
      const token = await client.accessToken()
      await repeat(1, signal, async () => {
        const sent = hostile
          .flatMap(({ requests }) => requests(0))
          .map(async ({ method, path, body }) => {
            const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
            await fetch(client.apiUrl + path, { method, headers, signal, ...(body === undefined ? {} : { body }) })
              .then((response) => response.arrayBuffer())
              .catch(() => undefined)
          })
        await Promise.all(sent)
      })
    },
  },
]
