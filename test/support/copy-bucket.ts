import { newId } from '#model/id.ts'
import type { BucketTarget } from '#objects/object-store.ts'

/** A bucket for copies. */
export const copyBucket: BucketTarget = {
  ...{ id: newId(), bucket: 'copies', region: 'loc', role_arn: null, external_id: newId(), path_style: true },
  ...{ encryption: 'bucket-default', kms_key_arn: null, checksums: 'none', allowed_buckets: [] },
}
