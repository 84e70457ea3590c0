/**
 * The Inlet that black-box suites run against: the one configured by `INLET_E2E_*` with URLs and a key, or one on this machine
 * that all of them share.
 *
 * Law: tests use only the public API and the objects in the bucket. Each test creates resources with unique names and removes them
 * at the end, so that a run can be repeated on the same deployment.
 */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { describe, inject } from 'vitest'
import { type Address, ApiClient } from './api-client.ts'
import { type EndpointSettings, Installation } from './installation.ts'
import { artifactPaths, type Marker, readMarkers } from './markers.ts'
import { ObjectCopy } from './object-copy.ts'
import { until } from './until.ts'
import { useOne } from './use-one.ts'

const environment = (name: string): string | undefined => process.env[`INLET_E2E_${name}`] || undefined

/** The deployment under test, unless the tests start one. */
const given: Address | undefined = readAddress()
const region = environment('REGION') ?? 'loc'
const bucketsDirectory = environment('BUCKETS_DIR')
const s3Endpoint = environment('S3_ENDPOINT')

/** Why a suite cannot run against the given deployment. */
const obstacles = {
  processes: given === undefined ? undefined : 'it starts, kills or configures processes',
  objects:
    given === undefined || bucketsDirectory !== undefined || s3Endpoint !== undefined
      ? undefined
      : 'it reads the bucket: set INLET_E2E_BUCKETS_DIR or INLET_E2E_S3_ENDPOINT',
}

/** Declares a suite that needs more than the API. If that is missing, the suite is skipped, and its name includes the reason. */
export function describeWith(need: keyof typeof obstacles, name: string, tests: () => void): void {
  const obstacle = obstacles[need]
  describe.skipIf(obstacle !== undefined)(obstacle === undefined ? name : `${name} (skipped: ${obstacle})`, tests)
}

/** One deployment for the tests of a file or a suite. */
export function useDeployment(): () => Deployment {
  return useOne(() => Deployment.open(), 120_000)
}

export type TestEndpoint = {
  readonly id: string
  /** The view that was attached, if one was asked for. Its name has a random suffix. */
  readonly viewId: string
  readonly viewName: string
}

type ViewInput = { readonly name: string; readonly definition: unknown }
type Place = { readonly bucket: string; readonly prefix: string; readonly bucketRegion: string }

export class Deployment extends ApiClient implements AsyncDisposable {
  readonly #own: Installation | undefined
  readonly #suffix = randomBytes(4).toString('hex')
  #names = 0
  readonly #created = { endpoints: new Set<string>(), views: new Set<string>(), destinations: new Set<string>() }
  readonly #places = new Map<string, Place>()
  #copy: ObjectCopy | undefined
  #canary: Promise<{ readonly viewId: string; readonly kind: string }> | undefined

  private constructor(address: Address, own: Installation | undefined) {
    super(address)
    this.#own = own
  }

  static async open(): Promise<Deployment> {
    if (given !== undefined) return new Deployment(given, undefined)
    const shared = inject('sharedInstallation')
    if (shared === undefined) throw new Error('the project has no global setup that starts an Inlet')
    const own = await Installation.attach(shared)
    return new Deployment(own, own)
  }

  /** MQTT over TCP where an address is given, over WebSocket otherwise. */
  mqttUrl(endpointId: string): string {
    return environment('MQTT_URL') ?? `${this.ingestUrl.replace(/^http/, 'ws')}/mqtt?endpoint=${endpointId}`
  }

  /** Returns a name that nothing else has, in this run or another. */
  unique(name: string): string {
    this.#names += 1
    return `${name}_${this.#suffix}_${this.#names}`
  }

  /** Creates a view and publishes it. */
  async publishedView({ name, definition }: ViewInput): Promise<string> {
    const { id } = await this.ok('POST', '/v1/views', { name, definition })
    this.#created.views.add(id)
    await this.ok('POST', `/v1/views/${id}/publish`)
    return id
  }

  /** Creates an endpoint that seals after a second, with a destination, and attaches a published view. Waits until both are in use. */
  async endpoint({ bucket, view, ...settings }: EndpointSettings): Promise<TestEndpoint> {
    const destinationId = await this.#destination(bucket)
    const { id } = await this.ok('POST', '/v1/endpoints', {
      ...{ region, destination_id: destinationId, segment_max_age_seconds: 1 },
      output_formats: ['segments', 'parquet', 'parquet_views'],
      ...settings,
    })
    this.#created.endpoints.add(id)
    const destination = await this.ok('GET', `/v1/destinations/${destinationId}`)
    this.#places.set(id, { bucket: destination.bucket, prefix: destination.prefix ?? '', bucketRegion: destination.region })
    const viewName = view === undefined ? '' : this.unique(view.name)
    const viewId = view === undefined ? '' : await this.publishedView({ ...view, name: viewName })
    if (view !== undefined) await this.ok('POST', `/v1/endpoints/${id}/views`, { view_id: viewId })
    await this.untilConfigured(id, viewId)
    return { id, viewId, viewName }
  }

  /** Waits until the endpoint accepts data and its segments are made with the view. */
  async untilConfigured(endpointId: string, viewId: string): Promise<void> {
    await until('the endpoint to be active', async () => (await this.#statusOf(endpointId)) === 'active', 60_000)
    if (this.#own !== undefined) await this.#own.untilConfigured(endpointId, viewId)
    else await this.#untilCanaryArrives(endpointId)
  }

  /** The markers of an endpoint, by sequence number. */
  async markers(endpointId: string): Promise<readonly Marker[]> {
    const { prefix } = this.#placeOf(endpointId)
    return readMarkers(await this.#bucketOf(endpointId), prefix, endpointId)
  }

  /** Local paths of the files of one kind that markers list. */
  async artifacts(endpointId: string, kind: string): Promise<readonly string[]> {
    const bucket = await this.#bucketOf(endpointId)
    return artifactPaths(bucket, readMarkers(bucket, this.#placeOf(endpointId).prefix, endpointId), kind)
  }

  /** Returns the segments on the node; none if the tests did not start it. */
  walFiles(endpointId: string): readonly string[] {
    return this.#own?.walFiles(endpointId) ?? []
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#copy?.[Symbol.asyncDispose]()
    if (this.#own === undefined) await this.#removeAll()
  }

  async #destination(name: string): Promise<string> {
    const existing = environment('DESTINATION_ID')
    if (existing !== undefined) return existing
    const unique = this.unique(name).replaceAll('_', '-')
    const wanted = { bucket: unique, prefix: 'in/let', region: 'local', role_arn: 'arn:aws:iam::000000000000:role/inlet-test' }
    const { id } = await this.ok('POST', '/v1/destinations', { name: unique, ...wanted })
    this.#created.destinations.add(id)
    const { status } = await this.ok('POST', `/v1/destinations/${id}/validate`)
    if (status !== 'valid')
      throw new Error('the deployment has no directory for buckets: set INLET_E2E_DESTINATION_ID to a valid destination')
    return id
  }

  async #statusOf(endpointId: string): Promise<string> {
    return (await this.ok('GET', `/v1/endpoints/${endpointId}`)).status
  }

  /**
   * Nodes apply a configuration as a whole. Once the files of another endpoint show a view that was attached to it just now, everything
   * that was configured before is in use as well.
   */
  async #untilCanaryArrives(endpointId: string): Promise<void> {
    this.#canary ??= this.#createCanary()
    const { viewId, kind } = await this.#canary
    const { destination_id } = await this.ok('GET', `/v1/endpoints/${endpointId}`)
    const { id } = await this.ok('POST', '/v1/endpoints', {
      ...{ region, destination_id, segment_max_age_seconds: 1, output_formats: ['parquet_views'] },
    })
    this.#created.endpoints.add(id)
    await this.ok('POST', `/v1/endpoints/${id}/views`, { view_id: viewId })
    await until('the endpoint to be active', async () => (await this.#statusOf(id)) === 'active', 60_000)
    await until(
      'the configuration to be applied',
      async () => {
        const receipt = await this.ingest(id, '{"n":1}')
        if (receipt.status !== 202) return false
        await this.committed(id, [receipt.body.segment_seq])
        return (await this.commits(id)).some(({ artifacts }) => kind in artifacts)
      },
      60_000,
    )
    await this.ok('DELETE', `/v1/endpoints/${id}`)
  }

  async #createCanary(): Promise<{ readonly viewId: string; readonly kind: string }> {
    const name = this.unique('canary')
    const viewId = await this.publishedView({ name, definition: { columns: [{ name: 'n', type: 'BIGINT', path: '$.n' }] } })
    return { viewId, kind: `views/${name}/v1` }
  }

  /** A local directory with the objects of the endpoint as they are now. */
  async #bucketOf(endpointId: string): Promise<string> {
    const { bucket, prefix, bucketRegion } = this.#placeOf(endpointId)
    if (this.#own !== undefined) return join(this.#own.buckets, bucket)
    if (bucketsDirectory !== undefined) return join(bucketsDirectory, bucket)
    if (s3Endpoint === undefined) throw new Error(`cannot read the bucket: ${obstacles.objects}`)
    this.#copy ??= await ObjectCopy.create(s3Endpoint, bucketRegion)
    return this.#copy.update(bucket, join(prefix, endpointId))
  }

  #placeOf(endpointId: string): Place {
    const place = this.#places.get(endpointId)
    if (place === undefined) throw new Error(`endpoint ${endpointId} was not created here`)
    return place
  }

  /** Objects stay in their buckets: Inlet never deletes what it has delivered. */
  async #removeAll(): Promise<void> {
    const { endpoints, views, destinations } = this.#created
    for (const id of endpoints) await this.api('DELETE', `/v1/endpoints/${id}`)
    for (const id of endpoints)
      await until('the endpoints to be gone', async () => (await this.api('GET', `/v1/endpoints/${id}`)).status === 404, 90_000)
    for (const id of views) await this.api('POST', `/v1/views/${id}/archive`)
    for (const id of destinations) await this.ok('DELETE', `/v1/destinations/${id}`)
  }
}

function readAddress(): Address | undefined {
  const [apiUrl, ingestUrl, apiKey] = [environment('CONTROL_URL'), environment('INGEST_URL'), environment('API_KEY')]
  if (apiUrl === undefined && ingestUrl === undefined && apiKey === undefined) return undefined
  if (apiUrl === undefined || ingestUrl === undefined || apiKey === undefined)
    throw new Error('set all three of INLET_E2E_CONTROL_URL, INLET_E2E_INGEST_URL and INLET_E2E_API_KEY, or none')
  return { apiUrl: apiUrl.replace(/\/$/, ''), ingestUrl: ingestUrl.replace(/\/$/, ''), apiKey }
}
