/** Sets an account up over the API, as far as a test takes it for granted. */
import { join } from 'node:path'
import { newId } from '#model/id.ts'
import { newRegion, type TestAccount, type TestControl } from './control.ts'
import { TestNode } from './test-node.ts'

type Account = Pick<TestAccount, 'post'>

export async function aDestination(account: Account, more: object = {}) {
  const where = { bucket: 'lake', region: 'eu-central-1', role_arn: 'arn:aws:iam::123456789012:role/ingest' }
  return (await account.post('/v1/destinations', { name: 'lake', ...where, ...more })).body
}

const oneColumn = { columns: [{ name: 'a', type: 'VARCHAR', path: '$.a' }] }

export async function aPublishedView(account: Account, name = 'events', definition: object = oneColumn) {
  const { body } = await account.post('/v1/views', { name, definition })
  await account.post(`/v1/views/${body.id}/publish`)
  return body
}

const newBucket = () => `lake-${newId().slice(0, 8)}`

type Settings = { readonly name?: string; readonly bucket?: string }

/** An endpoint with a bucket of its own, and the only node of its region. */
export async function anEndpointWithNode(
  control: TestControl,
  account: Account,
  { bucket = newBucket(), ...more }: Settings = {},
) {
  const region = newRegion()
  const destination = await aDestination(account, { bucket })
  const { body: endpoint } = await account.post('/v1/endpoints', { region, destination_id: destination.id, ...more })
  const node = await TestNode.register(control, region)
  return {
    ...{ region, bucket, destination, endpoint, node },
    /** Where a commit says that its files are. */
    place: { id: destination.id as string, bucket, region: destination.region as string },
    /** A file of the bucket. */
    pathOf: (key: string) => join(control.directory, 'buckets', bucket, key),
  }
}
