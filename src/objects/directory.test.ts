import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '#lib/clock.ts'
import { seededRandom } from '#lib/random.ts'
import { system } from '#lib/system.ts'
import { FaultyDisk } from '../../test/support/faulty-files.ts'
import { DirectoryStores } from './directory.ts'
import { SignedUrls } from './signed-urls.ts'

const external_id = 'inlet-first'
const lake = { bucket: 'lake', external_id }
const modeOf = async (path: string) => (await stat(join(root, path))).mode & 0o777

const options = { contentType: 'text/plain', metadata: {} }
let root = ''

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'inlet-objects-'))
})
afterEach(() => rm(root, { recursive: true }))

test('a damaged owner of a folder is refused: the bucket would be another, empty folder', async () => {
  await new DirectoryStores({ ...system, root }).open(lake).put('x', Buffer.from('x'), options)
  const path = join(root, '.owners/lake')
  const intact = await readFile(path)
  const keyed = (bytes: Buffer) => writeFile(path, bytes).then(() => new DirectoryStores({ ...system, root }).open(lake).get('x'))
  for (let bit = 0; bit < (intact.length - 1) * 8; bit += 1) {
    const flipped = Buffer.from(intact)
    flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7))
    await expect(keyed(flipped), `bit ${bit}`).rejects.toThrow('buckets/.owners/lake is damaged')
  }
  for (let length = 0; length < intact.length - 1; length += 1)
    await expect(keyed(intact.subarray(0, length)), `cut to ${length}`).rejects.toThrow('damaged')
  expect(await keyed(Buffer.from(`${external_id}\n`))).toEqual(Buffer.from('x'))
})

describe('DirectoryStore', () => {
  test('put stores an object under bucket and key, and replaces an existing one', async () => {
    const store = new DirectoryStores({ ...system, root }).open({ bucket: 'local', external_id })
    await store.put('a/b/c.txt', Buffer.from('one'), options)
    await store.put('a/b/c.txt', Buffer.from('two'), options)
    expect(await readFile(join(root, 'local/a/b/c.txt'), 'utf8')).toBe('two')
    expect(await readdir(join(root, '.incoming'))).toEqual([])
  })

  test('a power cut leaves the object before or after a put, and after one that has resolved', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer(), fc.integer({ min: 0, max: 40 }), async (seed, cutAt) => {
        const disk = new FaultyDisk(seededRandom(seed))
        const open = () => new DirectoryStores({ files: disk.mount(), root: '/buckets' }).open(lake)
        await open().put('a/b', Buffer.alloc(2_000, 'one'), options)
        let operations = 0
        disk.fault = () => (operations++ === cutAt ? 'crash before' : undefined)
        const put = open().put('a/b', Buffer.alloc(3_000, 'two'), options)
        const isPut = await put.then(
          () => true,
          () => false,
        )
        disk.fault = () => undefined
        disk.crash()
        const found = Buffer.from((await open().get('a/b')) ?? [])
        expect(isPut ? ['two'] : ['one', 'two']).toContain(found.toString('utf8', 0, 3))
        expect(found).toHaveLength(found[0] === 'o'.charCodeAt(0) ? 2_000 : 3_000)
      }),
    )
  })

  test('a key cannot leave the bucket', async () => {
    const store = new DirectoryStores({ ...system, root }).open({ bucket: 'local', external_id })
    await expect(store.put('../other/x', Buffer.from(''), options)).rejects.toThrow('invalid part of an object key')
    expect(() => new DirectoryStores({ ...system, root }).open({ bucket: '..', external_id })).toThrow('invalid name of a bucket')
  })

  test('only the owner can read objects, whatever the permissions of the uploaded file', async () => {
    const source = join(root, 'source')
    await writeFile(source, 'one', { mode: 0o644 })
    const store = new DirectoryStores({ ...system, root: join(root, 'buckets') }).open(lake)
    await store.putFile('a/b', source, options)
    await store.put('a/c', Buffer.from('two'), options)
    for (const path of ['buckets', 'buckets/.incoming', 'buckets/lake', 'buckets/lake/a'])
      expect(await modeOf(path), path).toBe(0o700)
    for (const path of ['buckets/lake/a/b', 'buckets/lake/a/c']) expect(await modeOf(path), path).toBe(0o600)
  })

  test('a group that may read buckets gets their directories and objects, and nothing else', async () => {
    const groupId = process.getgid?.() ?? 0
    const before = new DirectoryStores({ ...system, root: join(root, 'data/buckets') })
    await before.open(lake).put('a/old', Buffer.from('one'), options)
    const stores = new DirectoryStores({ ...system, root: join(root, 'data/buckets'), groupId })
    await stores.prepare()
    await stores.open(lake).put('a/b', Buffer.from('two'), options)
    // The group may pass through the data directory, but not list it.
    expect(await modeOf('data')).toBe(0o710)
    for (const path of ['', '/lake', '/lake/a']) expect(await modeOf(`data/buckets${path}`), path).toBe(0o750)
    expect(await modeOf('data/buckets/lake/a/b')).toBe(0o640)
    for (const path of ['.incoming', '.owners']) expect(await modeOf(`data/buckets/${path}`), path).toBe(0o700)
  })
})

describe('buckets of several accounts', () => {
  const other = { bucket: 'lake', external_id: 'inlet-second' }

  test('a name belongs to the first account; the bucket of another account is a folder of its own', async () => {
    const stores = new DirectoryStores({ ...system, root })
    await stores.open(lake).put('k', Buffer.from('first'), options)
    await stores.open(other).put('k', Buffer.from('second'), options)
    // Another process, later.
    const later = new DirectoryStores({ ...system, root })
    expect(String(await later.open(other).get('k'))).toBe('second')
    expect(String(await later.open(lake).get('k'))).toBe('first')
    expect(await readFile(join(root, 'lake/k'), 'utf8')).toBe('first')
    expect(await readFile(join(root, 'lake@inlet-second/k'), 'utf8')).toBe('second')
    expect(await later.open(other).head('only')).toBeUndefined()
  })

  test('accounts that claim a name at the same time get different folders', async () => {
    const [one, two] = [new DirectoryStores({ ...system, root }), new DirectoryStores({ ...system, root })]
    await Promise.all([
      one.open(lake).put('k', Buffer.from('first'), options),
      two.open(other).put('k', Buffer.from('second'), options),
    ])
    expect(String(await one.open(lake).get('k'))).toBe('first')
    expect(String(await two.open(other).get('k'))).toBe('second')
  })

  test('a folder without an owner belongs to the account that adopts it, and not to the first that comes', async () => {
    await mkdir(join(root, 'lake'))
    await writeFile(join(root, 'lake/theirs'), 'x')
    const stores = new DirectoryStores({ ...system, root })
    await stores.adopt(async (bucket) => (bucket === 'lake' ? other.external_id : undefined))
    await stores.open(lake).put('k', Buffer.from('mine'), options)
    expect(await readdir(join(root, 'lake'))).toEqual(['theirs'])
    expect(await stores.open(lake).head('theirs')).toBeUndefined()
    expect(String(await stores.open(other).get('theirs'))).toBe('x')
  })

  test('links name the folder of the account', async () => {
    const signedUrls = new SignedUrls({ baseUrl: 'http://inlet', secret: 'secret', clock: systemClock })
    const stores = new DirectoryStores({ ...system, root, signedUrls })
    await stores.open(lake).put('k', Buffer.from('first'), options)
    await stores.open(other).put('k', Buffer.from('second'), options)
    const name = signedUrls.verify(await stores.open(other).presign('k', 60))
    const found = typeof name === 'string' ? undefined : await stores.read(name)
    expect(found && (await text(found.stream))).toBe('second')
  })
})
