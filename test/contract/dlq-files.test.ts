import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { newId } from '#model/id.ts'
import { useControl } from '../support/control.ts'
import { anEndpointWithNode, aPublishedView } from '../support/set-up.ts'
import { aCommit } from '../support/test-node.ts'

const control = useControl()

const rows = [{ error_code: 'invalid_json', record: '{' }]
const file = gzipSync(`${rows.map((row) => JSON.stringify(row)).join('\n')}\n`)

async function furnished() {
  const account = await control().newAccount()
  const { region, bucket, destination, endpoint, node, place, pathOf: fileOf } = await anEndpointWithNode(control(), account)
  const view = await aPublishedView(account)
  const keyOf = (seq: number) => `p//q/dlq/events/v1/dt=2026-11-20/ü ${seq}.ndjson.gz`
  const commit = async (first: number, count = 1, endpoint_id = endpoint.id) => {
    const commits = Array.from({ length: count }, (_, index) => {
      const artifact = { key: keyOf(first + index), bytes: file.length, rows: 1, sha256: 'ab', view_id: view.id, view_version: 1 }
      return aCommit(node.id, endpoint_id, first + index, {
        destination: place,
        artifacts: { 'dlq/events/v1': artifact },
      })
    })
    expect(await node.call('POST', 'commits', { commits })).toMatchObject({ status: 200 })
  }
  const pathOf = (seq: number) => fileOf(keyOf(seq).replace('//', '/%/'))
  const write = (seq: number) => {
    mkdirSync(dirname(pathOf(seq)), { recursive: true })
    writeFileSync(pathOf(seq), file)
  }
  const path = `/v1/views/${view.id}/dlq-files`
  const seqs = async (query: string) => {
    const { status, body } = await account.get(`${path}${query}`)
    expect(status).toBe(200)
    return body.files.map(({ segment_seq }: { segment_seq: number }) => segment_seq)
  }
  return { account, region, bucket, destination, view, endpoint, path, seqs, commit, write, keyOf, pathOf }
}

function fileKey({ endpoint_id, segment_seq }: { readonly endpoint_id: string; readonly segment_seq: number }): string {
  return `${endpoint_id} ${segment_seq}`
}

/** Downloads with the URL alone, without credentials. */
function download(url: string): Promise<Response> {
  return fetch(url.replace('http://inlet.test', control().url))
}

describe('GET /v1/views/{id}/dlq-files', () => {
  test('200 without files', async () => {
    const { account, view, path } = await furnished()
    expect(await account.get(path)).toMatchObject({
      status: 200,
      body: { view_id: view.id, view_name: 'events', view_version: 1, files: [], total: 0 },
    })
  })

  test('200 newest first, with the details and a download URL of each file', async () => {
    const { account, bucket, endpoint, path, commit, write, keyOf } = await furnished()
    await commit(1)
    await commit(2)
    write(2)
    const { status, body } = await account.get(path)
    expect({ status, total: body.total }).toEqual({ status: 200, total: 2 })
    expect(body.files.map(({ segment_seq }: { segment_seq: number }) => segment_seq)).toEqual([2, 1])
    const [latest] = body.files
    expect(latest).toMatchObject({
      ...{ endpoint_id: endpoint.id, segment_seq: 2, s3_key: keyOf(2), s3_bucket: bucket, region: 'eu-central-1' },
      ...{ bytes: file.length, rows: 1 },
    })
    expect(latest.endpoint_name).toBe(endpoint.name)
    expect(latest.created_at).toMatch(/\.\d{3}Z$/)

    const response = await download(latest.download_url)
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('application/gzip')
    expect(response.headers.get('content-length')).toBe(String(file.length))
    expect(response.headers.get('content-disposition')).toBe(
      `attachment; filename="? 2.ndjson.gz"; filename*=UTF-8''%C3%BC%202.ndjson.gz`,
    )
    expect(response.headers.get('cache-control')).toBe('private, no-store')
    expect(gunzipSync(Buffer.from(await response.arrayBuffer())).toString()).toBe(`${JSON.stringify(rows[0])}\n`)
  })

  test('200 with download URLs for a token with scope metrics, which reads dead letter files', async () => {
    const { account, path, commit, write } = await furnished()
    await commit(1)
    write(1)
    const { status, body } = await account.as('metrics').get(path)
    expect(status).toBe(200)
    expect((await download(body.files[0].download_url)).status).toBe(200)
  })

  test('200 returns the latest thousand and the total', { timeout: 60_000 }, async () => {
    const { account, path, commit } = await furnished()
    for (let first = 0; first < 1_100; first += 100) await commit(first, 100)
    const { body } = await account.get(path)
    expect({ total: body.total, files: body.files.length }).toEqual({ total: 1_100, files: 1_000 })
    expect(body.files[0].segment_seq).toBe(1_099)
    expect(body.files.at(-1).segment_seq).toBe(100)
  })

  test('200 filters by endpoint; an unknown endpoint has no files', async () => {
    const { account, region, endpoint, destination, path, commit, seqs } = await furnished()
    const { body: other } = await account.post('/v1/endpoints', { region, destination_id: destination.id })
    await commit(1, 2)
    await commit(7, 1, other.id)
    expect(await seqs(`?endpoint_id=${endpoint.id}`)).toEqual([2, 1])
    expect(await seqs(`?endpoint_id=${other.id}`)).toEqual([7])
    expect((await account.get(`${path}?endpoint_id=${other.id}`)).body.total).toBe(1)
    expect(await account.get(`${path}?endpoint_id=${newId()}`)).toMatchObject({ status: 200, body: { files: [], total: 0 } })
    const { body: foreign } = await (await control().newAccount()).post('/v1/endpoints', { region })
    expect(await account.get(`${path}?endpoint_id=${foreign.id}`)).toMatchObject({ status: 200, body: { files: [], total: 0 } })
  })

  test('200 filters by a time range, excluding its end', async () => {
    const { account, path, commit, seqs } = await furnished()
    for (const seq of [1, 2, 3]) {
      await commit(seq)
      control().clock.advance(10_000)
    }
    const { body } = await account.get(path)
    const second = encodeURIComponent(body.files[1].created_at)
    expect(await seqs(`?created_after=${second}`)).toEqual([3, 2])
    expect(await seqs(`?created_before=${second}`)).toEqual([1])
    expect(await seqs(`?created_after=${second}&created_before=${second}`)).toEqual([])
    const later = new Date(Date.parse(body.files[1].created_at) + 1).toISOString()
    expect(await seqs(`?created_after=${second}&created_before=${later}`)).toEqual([2])
    const elsewhere = `${new Date(Date.parse(body.files[1].created_at) + 7_200_000).toISOString().slice(0, -1)}+02:00`
    expect(await seqs(`?created_before=${encodeURIComponent(elsewhere)}`)).toEqual([1])
  })

  test('200 pages neither repeat nor skip a file, even if files are added meanwhile', async () => {
    const { account, region, destination, path, commit } = await furnished()
    const endpoints: (string | undefined)[] = [undefined]
    for (let index = 0; index < 4; index += 1) {
      endpoints.push((await account.post('/v1/endpoints', { region, destination_id: destination.id })).body.id)
    }
    for (const [index, endpoint] of endpoints.entries()) await commit(10 * index, 3, endpoint)
    const { body: all } = await account.get(path)
    const keys = []
    for (let cursor = ''; ; ) {
      const { status, body } = await account.get(`${path}?limit=4${cursor}`)
      expect({ status, total: body.total - all.total >= 0 }).toEqual({ status: 200, total: true })
      keys.push(...body.files.map(fileKey))
      if (body.next_cursor === null) break
      expect(body.files).toHaveLength(4)
      cursor = `&cursor=${encodeURIComponent(body.next_cursor)}`
      control().clock.advance(1_000)
      await commit(100 + keys.length)
    }
    expect(keys).toEqual(all.files.map(fileKey))
  })

  test('200 has `next_cursor` only if `limit` is given', async () => {
    const { account, endpoint, path, commit } = await furnished()
    await commit(1, 2)
    const keysOf = async (query: string) => Object.keys((await account.get(`${path}${query}`)).body)
    const spec = ['view_id', 'view_name', 'view_version', 'files', 'total', 'may_lack_commits_since']
    expect(await keysOf('')).toEqual(spec)
    expect(await keysOf(`?endpoint_id=${endpoint.id}`)).toEqual(spec)
    expect(await keysOf('?limit=1')).toEqual([...spec, 'next_cursor'])
    expect((await account.get(`${path}?limit=2`)).body.next_cursor).toBeNull()
  })

  test.each([
    ['endpoint_id=mine', 'endpoint_id'],
    ['created_after=yesterday', 'created_after'],
    ['created_before=2026-11-20', 'created_before'],
    ['limit=1&cursor=', 'cursor'],
    ['limit=1&cursor=2026-11-20T00:00:00.000Z', 'cursor'],
    [`limit=1&cursor=${'9'.repeat(30)}_a`, 'cursor'],
    ['cursor=1_a', 'limit'],
    ['before=2026-11-20T00:00:00.000Z', 'before'],
  ])('422 for ?%s', async (query, where) => {
    const { account, path } = await furnished()
    expect(await account.get(`${path}?${query}`)).toMatchObject({ status: 422, body: { errors: [{ path: where }] } })
  })

  test('200 with a URL for a deleted endpoint', async () => {
    const { account, endpoint, path, commit, write } = await furnished()
    await commit(1)
    write(1)
    await account.patch(`/v1/endpoints/${endpoint.id}`, { name: 'checkout' })
    expect(await account.delete(`/v1/endpoints/${endpoint.id}?force=true`)).toMatchObject({ status: 200 })
    const { body } = await account.get(path)
    expect(body).toMatchObject({ total: 1, files: [{ endpoint_id: endpoint.id, endpoint_name: 'checkout', segment_seq: 1 }] })
    expect((await download(body.files[0].download_url)).status).toBe(200)
  })

  test('200 without a URL once the destination is deleted', async () => {
    const { account, destination, endpoint, path, commit } = await furnished()
    await commit(1)
    await account.patch(`/v1/endpoints/${endpoint.id}`, { destination_id: null })
    expect(await account.delete(`/v1/destinations/${destination.id}`)).toMatchObject({ status: 204 })
    expect(await account.get(path)).toMatchObject({ status: 200, body: { total: 1, files: [{ download_url: null }] } })
  })
})

describe('a download URL', () => {
  async function signed() {
    const furniture = await furnished()
    await furniture.commit(1)
    furniture.write(1)
    const { body } = await furniture.account.get(furniture.path)
    return { ...furniture, url: body.files[0].download_url as string }
  }

  test('is valid for an hour', async () => {
    const { url } = await signed()
    control().clock.advance(3_590_000)
    expect((await download(url)).status).toBe(200)
    control().clock.advance(20_000)
    const answer = await download(url)
    expect(answer.status).toBe(403)
    expect(answer.headers.get('content-type')).toBe('application/problem+json')
    expect(await answer.json()).toMatchObject({ error: 'forbidden', detail: expect.stringContaining('expired') })
  })

  test('is valid for this object only', async () => {
    const { url, bucket } = await signed()
    for (const other of [
      url.replace('1.ndjson', '2.ndjson'),
      url.replace(bucket, 'another'),
      url.replace(bucket, '..'),
      url.replace(`${bucket}/`, `${bucket}/..%2f`),
      url.replace(/expires=\d/, 'expires=9'),
      url.replace(/signature=..../, 'signature=0000'),
      url.replace(/\?.*/, ''),
    ]) {
      const { status } = await download(other)
      expect([403, 404], other).toContain(status)
    }
    expect((await download(url)).status).toBe(200)
  })

  test('404 if the object is missing or a folder', async () => {
    const { url, pathOf } = await signed()
    rmSync(pathOf(1))
    expect((await download(url)).status).toBe(404)
    mkdirSync(pathOf(1))
    expect((await download(url)).status).toBe(404)
  })

  test('405 for another method', async () => {
    const { url } = await signed()
    const answer = await fetch(url.replace('http://inlet.test', control().url), { method: 'DELETE' })
    expect(answer.status).toBe(405)
  })
})
