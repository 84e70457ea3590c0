import { join } from 'node:path'
import { system } from '#lib/system.ts'
import { objectStoreSuite } from '../../test/support/object-store-suite.ts'
import { newDoubleBucket } from '../../test/support/s3/target.ts'
import { DirectoryStores } from './directory.ts'

objectStoreSuite('directory', async (directory) => {
  const store = new DirectoryStores({ ...system, root: join(directory, 'buckets') }).open({
    bucket: 'lake',
    external_id: 'inlet-test',
  })
  return { store, async [Symbol.asyncDispose]() {} }
})

objectStoreSuite('S3', () => newDoubleBucket())
