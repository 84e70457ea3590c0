/** A node on a machine of its own joins with a token, and needs it no more. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { Installation } from '../support/installation.ts'
import { until } from '../support/until.ts'

const program = resolve(import.meta.dirname, '../../src/main.ts')
const fixture = (name: string) => resolve(import.meta.dirname, '../fixtures/tls', name)

test('inlet node --region --control --join-token', { timeout: 120_000 }, async () => {
  const certificate = {
    INLET_NODE_API_CERTIFICATE_FILE: fixture('chain.crt'),
    INLET_NODE_API_KEY_FILE: fixture('chain.key'),
  }
  await using installation = await Installation.create({ environment: certificate })
  const { directory, nodeApiUrl, apiUrl, ingestUrl } = installation
  await installation.start('control')
  const environment = { INLET_DATA_DIR: directory, NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'], ...certificate }
  const inlet = async (...args: readonly string[]) =>
    (await promisify(execFile)(process.execPath, [program, ...args], { env: environment })).stdout
  const [token = ''] = (await inlet('join-tokens', 'create', '--name', 'rack 4', '--region', 'fra')).split('\n')

  const dataDir = join(directory, 'elsewhere')
  const place = ['node', '--region', 'fra', '--control', nodeApiUrl.replace('http:', 'https:'), '--data-dir', dataDir]
  const start = async (name: string, ...more: readonly string[]) => {
    const child = installation.spawn(name, { instead: program, args: [...place, ...more] })
    await until(
      'the node to be ready',
      () => {
        if (child.exitCode !== null) throw new Error(installation.log)
        return fetch(`${ingestUrl}/readyz`).then(
          ({ ok }) => ok,
          () => false,
        )
      },
      60_000,
    )
    return child
  }
  const child = await start('first', '--join-token', token)
  // Other users of the machine can read this.
  expect(readFileSync(`/proc/${child.pid}/cmdline`, 'utf8')).not.toContain('ing_join')

  const { id } = await installation.endpoint({ bucket: 'fra', region: 'fra' })
  const { status, body } = await installation.ingest(id, '{"id":1}')
  expect(status).toBe(202)
  const headers = { authorization: `Bearer ${readFileSync(join(directory, 'operator-token'), 'utf8').trim()}` }
  await until('both processes to report', async () => {
    const { items } = JSON.parse(await (await fetch(`${apiUrl}/v1/nodes`, { headers })).text())
    return items.length === 1 && items[0].id === body.node_id && items[0].region === 'fra' && items[0].healthy
  })
  expect(await inlet('join-tokens', 'list')).toMatch(/ used_up +1 of 1 /)

  await installation.end('first', 'SIGTERM')
  await start('second')
  expect((await installation.ingest(id, '{"id":2}')).body.node_id).toBe(body.node_id)
  await installation.end('second', 'SIGTERM')
  expect(installation.log).not.toContain('ing_join')
})
