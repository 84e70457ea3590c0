/** The how-to page about S3 with a role, as its reader follows it: operator and owner of the bucket. */
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../tools/services/processes.ts'
import { describeGateway, type GatewayDescription } from '../support/object-gateway.ts'
import { Reader, searchPath, testPage, withKey } from '../support/page.ts'

describeGateway('page of roles', (gateway) => {
  testPage('how-to/s3-with-a-role.md', ['aws'], async () => {
    const [control, ingest, nodeApi] = [await freePort(), await freePort(), await freePort()]
    const { accessKeyId, secretAccessKey } = gateway.service
    await using reader = new Reader({
      sharesNetwork: true,
      environment: {
        INLET_CONTROL_LISTEN: `127.0.0.1:${control}`,
        INLET_INGEST_LISTEN: `127.0.0.1:${ingest}`,
        INLET_NODE_API_LISTEN: `127.0.0.1:${nodeApi}`,
        INLET_S3_ENDPOINT: gateway.url,
        INLET_STS_ENDPOINT: gateway.stsUrl,
        AWS_ACCESS_KEY_ID: accessKeyId,
        AWS_SECRET_ACCESS_KEY: secretAccessKey,
        AWS_REGION: 'us-east-1',
      },
    })
    actAsOwner(reader, gateway)
    const bucket = `acme-${randomBytes(4).toString('hex')}`
    await reader.follow('how-to/s3-with-a-role.md', (code) =>
      withKey(reader)(code)
        .replace('inlet login', `inlet login http://127.0.0.1:${control}`)
        .replace(/arn:aws:iam::OPERATOR_ACCOUNT:user\/inlet/, gateway.service.arn)
        .replace('BUCKET=acme-lake', `BUCKET=${bucket}`)
        .replace('OWNER_ACCOUNT=222222222222', `OWNER_ACCOUNT=${gateway.customer.account}`)
        .replace('inlet destinations create', 'inlet destinations create --set path_style=true'),
    )
  })
})

/**
 * Lets `aws` act as the owner of the bucket, at the gateway. It denies what has a condition on the external id; the front of its STS
 * checks that. And objects that a role puts are not their account's there: the policy of the bucket lets the owner read them.
 */
function actAsOwner(reader: Reader, { url, stsUrl, customer }: GatewayDescription): void {
  const folder = join(reader.directory, 'bin')
  const own = execFileSync('which', ['aws'], { env: { PATH: searchPath }, encoding: 'utf8' }).trim()
  const script = `#!/bin/bash
set -eu
export AWS_DEFAULT_REGION=us-east-1 AWS_ENDPOINT_URL='${url}' AWS_ACCESS_KEY_ID='${customer.accessKeyId}' AWS_SECRET_ACCESS_KEY='${customer.secretAccessKey}'
if [ "$1 $2" = 'iam create-role' ]; then
  external=$(jq --raw-output '.Statement[0].Condition.StringEquals["sts:ExternalId"]' trust.json)
  role=$(jq --raw-output --null-input --arg role "arn:aws:iam::${customer.account}:role/$4" '$role | @uri')
  curl --fail --silent --request PUT --data "$external" "${stsUrl}/demands/$role"
  # The gateway reads policies of one line.
  jq --compact-output 'del(.Statement[].Condition)' trust.json > trust.tmp && mv trust.tmp trust.json
  jq --compact-output . access.json > access.tmp && mv access.tmp access.json
fi
'${own}' "$@"
if [ "$1 $2" = 's3 mb' ]; then
  bucket=\${3#s3://}
  '${own}' s3api put-bucket-policy --bucket "$bucket" --policy "{\\"Version\\":\\"2012-10-17\\",\\"Statement\\":[{\\"Effect\\":\\"Allow\\",\\"Principal\\":{\\"AWS\\":[\\"${customer.arn}\\"]},\\"Action\\":\\"s3:*\\",\\"Resource\\":[\\"arn:aws:s3:::$bucket\\",\\"arn:aws:s3:::$bucket/*\\"]}]}"
fi
`
  writeFileSync(join(folder, 'aws'), script)
  chmodSync(join(folder, 'aws'), 0o755)
}
