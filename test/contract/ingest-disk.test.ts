/**
 * A node whose disk fails while it runs: it stays up, says what is wrong, and goes on by itself when that is over. An unhandled rejection or
 * an uncaught exception fails the test.
 */
import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Files, type OpenFile, systemFiles } from '#lib/files.ts'
import { anEndpoint, aSnapshot, IngestNode, secretOf } from '../support/ingest-node.ts'

const endpoint = anEndpoint({ segment_max_age_seconds: 1 })
const snapshot = aSnapshot({ endpoints: [endpoint] })
const changing = ['open', 'makeDirectory', 'syncDirectory', 'rename', 'link', 'remove', 'removeDirectory', 'touch'] as const
const reading = ['read', 'bytes', 'list', 'freeBytes'] as const

/** Real files, all of whose operations fail while `code` is set. A file system that is only read-only can still be read. */
class FailingDisk {
  code: string | undefined
  readonly files: Files = {
    ...systemFiles,
    open: async (path, mode) => this.#wrap(await this.#run(systemFiles.open, path, mode)),
  }

  constructor() {
    for (const name of [...changing.slice(1), ...reading]) {
      Object.assign(this.files, {
        [name]: (...args: unknown[]) => {
          if (this.#fails(name)) return Promise.reject(this.#error())
          return Reflect.apply(systemFiles[name], this.files, args)
        },
      })
    }
  }

  #fails(name: string): boolean {
    return this.code !== undefined && (this.code === 'EIO' || !reading.some((each) => each === name))
  }

  #error(): Error {
    return Object.assign(new Error(`${this.code}: the disk of the test`), { code: this.code })
  }

  #run<A extends unknown[], T>(act: (...args: A) => Promise<T>, ...args: A): Promise<T> {
    return this.code === undefined ? act(...args) : Promise.reject(this.#error())
  }

  #wrap(file: OpenFile): OpenFile {
    return {
      path: file.path,
      write: (chunks, position) => this.#run(() => file.write(chunks, position)),
      read: (into, position) => this.#run(() => file.read(into, position)),
      bytes: () => file.bytes(),
      truncate: (bytes) => this.#run(() => file.truncate(bytes)),
      isLinked: () => file.isLinked(),
      isNamed: () => this.#run(() => file.isNamed()),
      sync: () => this.#run(() => file.sync()),
      close: () => file.close(),
    }
  }
}

test.each(['EIO', 'EROFS', 'ENOSPC'])(
  '%s of everything: 503 with the reason, then 202 again, and nothing is lost',
  async (code) => {
    const disk = new FailingDisk()
    await using node = await IngestNode.start({ snapshot, files: disk.files })
    expect(await send(node, 'before')).toBe(202)
    disk.code = code
    expect(await send(node, 'during')).toBe(503)
    await node.until('/readyz', ({ status }, body) => status === 503 && body.includes(code))
    // A change of the configuration cannot be stored, but is applied.
    await node.publish({ ...snapshot, epoch: 2, endpoints: [endpoint, anEndpoint()] })
    expect(await send(node, 'during')).toBe(503)
    disk.code = undefined
    await node.until('/readyz', ({ status }) => status === 200)
    expect(await send(node, 'after')).toBe(202)
    const payloads = (await node.stored(endpoint.id)).map(({ payload }) => payload.toString())
    expect(payloads.filter((payload) => payload !== 'during')).toEqual(['before', 'after'])
  },
)

test('a data directory that is away for a while: 503 with the reason, then 202 again, and nothing is lost', async () => {
  await using node = await IngestNode.start({
    snapshot: aSnapshot({ endpoints: [{ ...endpoint, segment_max_age_seconds: 3600 }] }),
  })
  expect(await send(node, 'before')).toBe(202)
  const [here, away] = [join(node.directory, 'node'), join(node.directory, 'away')]
  await rename(here, away)
  await node.until('/readyz', ({ status }, body) => status === 503 && body.includes('ENOENT'))
  expect(await send(node, 'during')).toBe(503)
  await rename(away, here)
  await node.until('/readyz', ({ status }) => status === 200)
  expect(await send(node, 'after')).toBe(202)
  expect((await node.stored(endpoint.id)).map(({ payload }) => payload.toString())).toEqual(['before', 'after'])
})

async function send(node: IngestNode, body: string): Promise<number> {
  const headers = { 'x-api-key': secretOf('a'), 'content-type': 'application/x-ndjson' }
  const response = await fetch(`${node.url}/v1/ingest?endpoint=${endpoint.id}`, { method: 'POST', headers, body })
  await response.arrayBuffer()
  return response.status
}
