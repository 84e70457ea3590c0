/** The views that apply to a segment: none, one, two versions at once, and from the start of a canary on. Commit and marker list them. */
import { expect, test } from 'vitest'
import { describeWith, useDeployment } from '../support/deployment.ts'
import type { Marker } from '../support/markers.ts'
import { runs } from '../support/thorough.ts'
import { until } from '../support/until.ts'

const columns = [{ name: 'n', type: 'BIGINT', path: '$.n' }]
const deployment = useDeployment()

describeWith('objects', 'the life of a view', () => {
  test('a binding takes effect with a later segment, two versions apply at once, and an archived one is detached', async () => {
    const life = await Life.begin()
    const [first, second] = life.versions
    const binding = await life.attach(first, { is_required: true })
    await life.delivers([1])
    await life.attach(second)
    const { artifacts, views } = await life.delivers([1, 2])
    expect(views).toMatchObject(life.versions.map((view_id, index) => ({ view_id, view_version: index + 1, processed: 1 })))
    for (const [index, view_id] of life.versions.entries())
      expect(artifacts[life.kind(index + 1)]).toMatchObject({ view_id, view_version: index + 1 })
    await life.detach(binding)
    await life.delivers([2])
    await deployment().ok('POST', `/v1/views/${second}/archive`)
    await life.delivers([])
  })

  test('a canary applies to exactly the segments that are sealed from its start on', async () => {
    const life = await Life.begin()
    const start = new Date(Date.now() + runs(3_000, 6_000)).toISOString()
    await life.attach(life.versions[0], { canary_start_ts: start })
    const seen: boolean[] = []
    while (seen.at(-1) !== true) {
      const { sealed_at, artifacts } = await life.deliver()
      seen.push(life.kind(1) in artifacts)
      expect({ sealed_at, applies: seen.at(-1) }).toEqual({ sealed_at, applies: sealed_at >= start })
    }
    expect(seen).toContain(false)
  })
})

/** An endpoint, and two versions of a view that are not attached to it. */
class Life {
  readonly versions: readonly [string, string]
  readonly #id: string
  readonly #name: string

  private constructor(id: string, name: string, versions: readonly [string, string]) {
    this.#id = id
    this.#name = name
    this.versions = versions
  }

  static async begin(): Promise<Life> {
    const { id } = await deployment().endpoint({ bucket: 'life', output_formats: ['parquet_views'] })
    const name = deployment().unique('life')
    const first = await deployment().publishedView({ name, definition: { columns } })
    const { id: second } = await deployment().ok('POST', `/v1/views/${first}/versions`)
    const definition = { columns: [...columns, { name: 's', type: 'VARCHAR', path: '$.s' }] }
    await deployment().ok('PATCH', `/v1/views/${second}`, { definition })
    await deployment().ok('POST', `/v1/views/${second}/publish`)
    return new Life(id, name, [first, second])
  }

  kind(version: number): string {
    return `views/${this.#name}/v${version}`
  }

  async attach(view_id: string, settings: object = {}): Promise<string> {
    return (await deployment().ok('POST', `/v1/endpoints/${this.#id}/views`, { view_id, ...settings })).id
  }

  detach(binding: string): Promise<unknown> {
    return deployment().ok('DELETE', `/v1/endpoints/${this.#id}/views/${binding}`)
  }

  /** Sends one record. Returns the marker of its segment, whose files the commit has as well. */
  async deliver(): Promise<Marker> {
    const { status, body } = await deployment().ingest(this.#id, '{"n":1}\n')
    expect(status, JSON.stringify(body)).toBe(202)
    await deployment().committed(this.#id, [body.segment_seq])
    const commits = await deployment().commits(this.#id)
    const commit = commits.find(({ seq, node_id }) => seq === body.segment_seq && node_id === body.node_id)
    const marker = (await deployment().markers(this.#id)).find(({ id }) => id === commit?.id)
    if (commit === undefined || marker === undefined) throw new Error('a commit without a marker')
    expect(Object.keys(commit.artifacts)).toEqual(expect.arrayContaining(Object.keys(marker.artifacts)))
    return marker
  }

  /** Waits until segments have files of exactly these versions, and stay so. */
  async delivers(versions: readonly number[]): Promise<Marker> {
    const kinds = String(versions.map((version) => this.kind(version)))
    const found = ({ artifacts }: Marker) =>
      String(
        Object.keys(artifacts)
          .filter((each) => each.startsWith('views/'))
          .toSorted(),
      )
    await until(`segments with ${kinds}`, async () => found(await this.deliver()) === kinds, 30_000)
    const next = await this.deliver()
    expect(found(next)).toBe(kinds)
    return next
  }
}
