import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { systemFiles } from '#lib/files.ts'
import { removeNodeLeftovers } from './leftovers.ts'

test('each process removes its own leftovers, and no file that another may be writing', async () => {
  const data = await mkdtemp(join(tmpdir(), 'inlet-leftovers-'))
  const [node, wal] = [join(data, 'node'), join(data, 'node/wal')]
  const paths = {
    nodeId: join(node, 'id'),
    walNodeId: join(wal, 'node-id'),
    deliverySnapshot: join(node, 'delivery-snapshot.ndjson'),
    deliveryBlocked: join(node, 'delivery-blocked.json'),
    markerKey: join(node, 'marker-key'),
    scrubState: join(node, 'scrub.json'),
  }
  await mkdir(wal, { recursive: true })
  const ofIngest = ['ingest-snapshot.ndjson.7-0.tmp', 'id.7-0a1b2c3d.tmp', 'credential.7-12.tmp', 'certificate.pem.7-3.tmp']
  const ofDelivery = [
    'delivery-snapshot.ndjson.9-4.tmp',
    'delivery-blocked.json.9-0.tmp',
    'marker-key.9-00ff00ff.tmp',
    'scrub.json.9-1.tmp',
  ]
  const others = ['id', 'notes.tmp', 'wal']
  for (const name of [...ofIngest, ...ofDelivery, 'id', 'notes.tmp']) await writeFile(join(node, name), '')
  for (const name of ['node-id.7-0a1b2c3d.tmp', 'node-id']) await writeFile(join(wal, name), '')

  await removeNodeLeftovers(systemFiles, paths, 'ingest')
  expect((await readdir(node)).sort()).toEqual([...ofDelivery, ...others].sort())
  expect(await readdir(wal)).toEqual(['node-id'])
  await removeNodeLeftovers(systemFiles, paths, 'delivery')
  expect((await readdir(node)).sort()).toEqual(others.sort())
  await rm(data, { recursive: true })
})
