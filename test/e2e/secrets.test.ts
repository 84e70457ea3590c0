/** The value of a secret is in the hashes, in the encrypted database and in the configuration of delivery, and nowhere else. */
import { createHmac, randomBytes } from 'node:crypto'
import { type Dirent, readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { describeWith } from '../support/deployment.ts'
import { Installation } from '../support/installation.ts'
import { readWithDuckDb } from '../support/parquet.ts'
import { until } from '../support/until.ts'

const value = `not to be seen ${randomBytes(12).toString('hex')}`
const rotated = `not to be seen either ${randomBytes(12).toString('hex')}`
const definition = {
  columns: [
    { name: 'email', type: 'VARCHAR', path: '$.email', hidden: true },
    { name: 'person', type: 'VARCHAR', value: "hmac_sha256('email_key', email)" },
    { name: 'half', type: 'BIGINT', value: "CAST(hmac_sha256('email_key', email) AS BIGINT)", cast_failures: 'dlq' },
  ],
}
const partial = { columns: definition.columns.slice(0, 2) }

/** The forms in which a value, or the key that is made of it, could be written. */
function formsOf(secret: string): readonly Buffer[] {
  const bytes = Buffer.from(secret)
  const padded = (mask: number) => Buffer.from(bytes.map((byte) => byte ^ mask))
  const all = [bytes, padded(0x36), padded(0x5c)]
  // The ends of base64 depend on what is around.
  const inBase64 = [0, 1, 2].map((at) => Buffer.from(bytes.subarray(at).toString('base64').slice(0, -4)))
  return [...all, ...all.map((each) => Buffer.from(each.toString('hex'))), ...inBase64]
}

/** Returns the files that have a form of a secret. */
function filesWith(directory: string, secrets: readonly string[]): readonly string[] {
  const entries: readonly Dirent[] = readdirSync(directory, { recursive: true, withFileTypes: true })
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  const forms = secrets.flatMap(formsOf)
  const found = paths.filter((path) => {
    const content = readFileSync(path)
    return forms.some((form) => content.includes(form))
  })
  return found.map((path) => relative(directory, path)).toSorted()
}

const hmac = (secret: string, text: string) => createHmac('sha256', secret).update(text).digest('hex')

describeWith('processes', 'a secret', () => {
  let installation: Installation
  beforeAll(async () => {
    installation = await Installation.create({ environment: { INLET_LOG_LEVEL: 'debug' } })
    await installation.start('control', 'ingest', 'delivery')
  })
  afterAll(() => installation[Symbol.asyncDispose]())

  test('hashes in delivery, from its rotation on with the new value, and is seen nowhere', async () => {
    const said: unknown[] = []
    const call = async (method: string, path: string, body?: object) => {
      const response = await installation.api(method, path, body)
      said.push(response.body)
      return response.body
    }
    const secret = await call('POST', '/v1/secrets', { name: 'email_key', value })
    const { id, viewId } = await installation.endpoint({ bucket: 'people', view: { name: 'people', definition: partial } })
    const rows = async (kind = 'views/people/v1') =>
      (await readWithDuckDb(installation.artifacts('people', id, kind))).map(({ person }) => person)
    const deliver = async () => {
      const { body } = await installation.ingest(id, '{"email":"a@b.example"}\n')
      await installation.committed(id, [body.segment_seq])
      return rows()
    }
    expect(await deliver()).toEqual([hmac(value, 'a@b.example')])

    await call('POST', `/v1/secrets/${secret.id}/rotate`, { value: rotated })
    const snapshot = join(installation.directory, 'node/delivery-snapshot.ndjson')
    const newest = Buffer.from(rotated).toString('base64')
    await until('delivery to have the new value', () => readFileSync(snapshot, 'utf8').includes(newest))
    expect((await deliver()).toSorted()).toEqual([hmac(value, 'a@b.example'), hmac(rotated, 'a@b.example')].toSorted())

    // A version whose rows fail, so that dead letters and errors are written. Its backfill hashes with the new value.
    const { id: next } = await call('POST', `/v1/views/${viewId}/versions`)
    await call('PATCH', `/v1/views/${next}`, { definition })
    await call('POST', `/v1/views/${next}/publish`)
    const job = await call('POST', `/v1/views/${next}/backfill`, { endpoint_id: id })
    await until('the end of the job', async () => (await installation.ok('GET', `/v1/jobs/${job.id}`)).finished_at !== null)
    expect(installation.artifacts('people', id, 'dlq/people/v2')).toHaveLength(2)

    const samples = ['{"email":"a@b.example"}', '{"email":5}', 'no JSON']
    const preview = await call('POST', '/v1/views/preview', { definition: partial, samples })
    expect(preview.rows[0].person).toBe(hmac(rotated, 'a@b.example'))
    await call('POST', '/v1/views/preview', { definition, samples })
    await call('POST', '/v1/secrets', { name: 'email_key', value })
    await call('POST', '/v1/secrets', { name: 'Not valid', value, encoding: 'base64' })
    await call('DELETE', `/v1/secrets/${secret.id}`)
    for (const path of ['/v1/secrets', '/v1/audit-events?limit=200', `/v1/views/${viewId}`, `/v1/jobs/${job.id}`])
      await call('GET', path)
    await call('GET', `/v1/views/${next}/metrics?detail=columns`)
    const responses = JSON.stringify(said)
    expect(responses).toContain('createSecret')

    const copies = await mkdtemp(join(tmpdir(), 'inlet-secrets-'))
    try {
      installation.configure({ INLET_URL: installation.apiUrl, INLET_API_KEY: installation.apiKey })
      for (const [command, ...args] of [
        ['backup', join(copies, 'backup')] as const,
        ['export', '-f', join(copies, 'export')] as const,
      ]) {
        const { exitCode, log } = await installation.run(command, ...args)
        expect(exitCode, log).toBe(0)
      }
      expect(filesWith(copies, [value, rotated])).toEqual([])
    } finally {
      await rm(copies, { recursive: true })
    }
    for (const text of [responses, installation.log])
      for (const form of [value, rotated].flatMap(formsOf)) expect(Buffer.from(text).includes(form)).toBe(false)
    expect(filesWith(installation.directory, [value, rotated])).toEqual(['node/delivery-snapshot.ndjson'])
  })
})
