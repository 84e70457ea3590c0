/**
 * The real S3 of `npm run test:services`, from the view of the customer who owns buckets and roles. Imports nothing of the program.
 */
import { createHash, randomUUID } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  CreateRoleCommand,
  DeleteRoleCommand,
  DeleteRolePolicyCommand,
  IAMClient,
  PutRolePolicyCommand,
} from '@aws-sdk/client-iam'
import {
  CreateBucketCommand,
  DeleteBucketCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  NoSuchKey,
  PutBucketPolicyCommand,
  paginateListObjectsV2,
  S3Client,
} from '@aws-sdk/client-s3'
import { describe } from 'vitest'
import type { Installation } from './installation.ts'
import type { Marker } from './markers.ts'

type GatewayUser = {
  readonly account: string
  readonly arn: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
}

export type GatewayDescription = {
  readonly url: string
  readonly stsUrl: string
  readonly kmsKeyArn: string
  readonly service: GatewayUser
  readonly customer: GatewayUser
  readonly stranger: GatewayUser
}

const described = process.env['INLET_TEST_OBJECT_GATEWAY']

/** Declares a suite that needs the gateway. */
export function describeGateway(name: string, suite: (gateway: GatewayDescription) => void): void {
  if (described !== undefined) describe(name, () => suite(JSON.parse(described)))
  else describe.skip(`${name} (skipped: INLET_TEST_OBJECT_GATEWAY is not set, see npm run test:services)`, () => undefined)
}

/** The environment of an installation that delivers to the gateway, directly or through a proxy. */
export function gatewayEnvironment(
  gateway: GatewayDescription,
  { s3Url = gateway.url, stsUrl = gateway.stsUrl }: { readonly s3Url?: string; readonly stsUrl?: string } = {},
): Readonly<Record<string, string>> {
  return {
    INLET_OBJECT_STORE: 's3',
    INLET_S3_ENDPOINT: s3Url,
    INLET_STS_ENDPOINT: stsUrl,
    INLET_AWS_PRINCIPAL_ARN: gateway.service.arn,
    AWS_ACCESS_KEY_ID: gateway.service.accessKeyId,
    AWS_SECRET_ACCESS_KEY: gateway.service.secretAccessKey,
    AWS_REGION: 'us-east-1',
  }
}

type Policy = { readonly Version: string; readonly Statement: readonly Readonly<Record<string, unknown>>[] }

export const putActions = ['s3:PutObject', 's3:AbortMultipartUpload'] as const
export const allActions = [
  ...putActions,
  's3:GetObject',
  's3:DeleteObject',
  's3:ListBucket',
  's3:ListMultipartUploadParts',
] as const

export type CustomerDestination = { readonly id: string; readonly bucket: string; readonly role: string; readonly prefix: string }

type CustomerGateway = Pick<GatewayDescription, 'url' | 'stsUrl' | 'customer'> & { readonly region?: string }

/** The owner of buckets and roles, and what they do in the AWS console. */
export class Customer {
  readonly #gateway: CustomerGateway
  readonly #iam: IAMClient
  readonly s3: S3Client

  constructor(gateway: CustomerGateway) {
    const { accessKeyId, secretAccessKey } = gateway.customer
    const common = { endpoint: gateway.url, region: gateway.region ?? 'us-east-1', credentials: { accessKeyId, secretAccessKey } }
    this.#gateway = gateway
    this.#iam = new IAMClient(common)
    this.s3 = new S3Client({ ...common, forcePathStyle: true })
  }

  roleArn(role: string): string {
    return `arn:aws:iam::${this.#gateway.customer.account}:role/${role}`
  }

  /** Creates bucket, role and destination with the trust policy from the API. Does not validate them. */
  async destination(
    installation: Pick<Installation, 'ok'>,
    {
      bucket = `lake-${randomUUID().slice(0, 8)}`,
      ...wish
    }: Readonly<Record<string, unknown>> & { readonly bucket?: string } = {},
  ): Promise<CustomerDestination> {
    await this.createBucket(bucket)
    const role = `inlet-${bucket}`
    const destination = await installation.ok('POST', '/v1/destinations', {
      ...{ name: bucket, bucket, prefix: 'in/let', region: 'us-east-1', role_arn: this.roleArn(role), path_style: true },
      ...wish,
    })
    await this.createRole(role, destination.trust_policy)
    await this.allow(role, bucket)
    return { id: destination.id, bucket, role, prefix: destination.prefix }
  }

  /** On AWS the objects that a role puts are its account's. On the gateway they are the caller's: the policy lets their bucket's owner read. */
  async createBucket(bucket: string): Promise<void> {
    await this.s3.send(new CreateBucketCommand({ Bucket: bucket }))
    const Resource = [`arn:aws:s3:::${bucket}`, `arn:aws:s3:::${bucket}/*`]
    const Statement = [{ Effect: 'Allow', Principal: { AWS: [this.#gateway.customer.arn] }, Action: 's3:*', Resource }]
    const policy: Policy = { Version: '2012-10-17', Statement }
    await this.s3.send(new PutBucketPolicyCommand({ Bucket: bucket, Policy: JSON.stringify(policy) }))
  }

  /** Removes the bucket and its objects. */
  async deleteBucket(bucket: string): Promise<void> {
    for (const { key } of await this.list(bucket)) await this.delete(bucket, key)
    await this.s3.send(new DeleteBucketCommand({ Bucket: bucket }))
  }

  /** The gateway denies what has a condition on the external id; the front of its STS checks that. */
  async createRole(role: string, trustPolicy: Policy): Promise<void> {
    const [statement = {}] = trustPolicy.Statement
    const { Condition, ...unconditional } = statement
    const document = JSON.stringify({ ...trustPolicy, Statement: [unconditional] })
    await this.#iam.send(new CreateRoleCommand({ RoleName: role, AssumeRolePolicyDocument: document }))
    const condition = Condition as { StringEquals?: Readonly<Record<string, string>> } | undefined
    await this.demand(role, condition?.StringEquals?.['sts:ExternalId'])
  }

  async demand(role: string, externalId: string | undefined): Promise<void> {
    await fetch(`${this.#gateway.stsUrl}/demands/${encodeURIComponent(this.roleArn(role))}`, {
      method: externalId === undefined ? 'DELETE' : 'PUT',
      body: externalId ?? null,
    })
  }

  /** The policy with exactly what sessions of the role may do in the bucket. */
  async allow(role: string, bucket: string, actions: readonly string[] = allActions): Promise<void> {
    const Resource = [`arn:aws:s3:::${bucket}`, `arn:aws:s3:::${bucket}/*`]
    const policy: Policy = { Version: '2012-10-17', Statement: [{ Effect: 'Allow', Action: actions, Resource }] }
    const name = { RoleName: role, PolicyName: 'inlet' }
    await this.#iam.send(new PutRolePolicyCommand({ ...name, PolicyDocument: JSON.stringify(policy) }))
  }

  async deleteRole(role: string): Promise<void> {
    await this.#iam.send(new DeleteRolePolicyCommand({ RoleName: role, PolicyName: 'inlet' }))
    await this.#iam.send(new DeleteRoleCommand({ RoleName: role }))
  }

  async list(bucket: string, prefix = ''): Promise<readonly { readonly key: string; readonly bytes: number }[]> {
    const found: { key: string; bytes: number }[] = []
    for await (const page of paginateListObjectsV2({ client: this.s3 }, { Bucket: bucket, Prefix: prefix })) {
      for (const { Key = '', Size = 0 } of page.Contents ?? []) found.push({ key: Key, bytes: Size })
    }
    return found
  }

  /** Returns undefined if the object does not exist. */
  async get(bucket: string, key: string): Promise<Uint8Array | undefined> {
    try {
      const { Body } = await this.s3.send(new GetObjectCommand({ Bucket: bucket, Key: key }))
      return await Body?.transformToByteArray()
    } catch (error) {
      if (error instanceof NoSuchKey) return undefined
      throw error
    }
  }

  async delete(bucket: string, key: string): Promise<void> {
    await this.s3.send(new DeleteObjectCommand({ Bucket: bucket, Key: key }))
  }

  head(bucket: string, key: string) {
    return this.s3.send(new HeadObjectCommand({ Bucket: bucket, Key: key }))
  }

  /** The markers of an endpoint, by name. */
  async markers(
    { bucket, prefix }: Pick<CustomerDestination, 'bucket' | 'prefix'>,
    endpointId: string,
  ): Promise<readonly Marker[]> {
    const found = await this.list(bucket, `${prefix}/${endpointId}/commits/`)
    return Promise.all(
      found.map(async ({ key }) => JSON.parse(Buffer.from((await this.get(bucket, key)) ?? []).toString('utf8'))),
    )
  }

  /** Downloads the artifacts of one kind that markers list, and checks them against the markers. */
  async download(bucket: string, markers: readonly Marker[], kind: string): Promise<Downloads> {
    await using stack = new AsyncDisposableStack()
    const directory = await mkdtemp(join(tmpdir(), 'inlet-download-'))
    stack.defer(() => rm(directory, { recursive: true }))
    const paths: string[] = []
    for (const { id, artifacts } of markers) {
      const artifact = artifacts[kind]
      if (artifact === undefined) continue
      const bytes = await this.get(bucket, artifact.key)
      if (bytes === undefined) throw new Error(`the marker ${id} lists ${artifact.key}, which is not there`)
      if (bytes.length !== artifact.bytes) throw new Error(`${artifact.key} has ${bytes.length} bytes, not ${artifact.bytes}`)
      if (sha256(bytes) !== artifact.sha256) throw new Error(`${artifact.key} has another SHA-256 than its marker says`)
      const path = join(directory, `${paths.length}-${artifact.key.split('/').at(-1)}`)
      await writeFile(path, bytes)
      paths.push(path)
    }
    const kept = stack.move()
    return { paths, [Symbol.asyncDispose]: () => kept.disposeAsync() }
  }
}

export type Downloads = AsyncDisposable & { readonly paths: readonly string[] }

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}
