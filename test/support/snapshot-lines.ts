/** A snapshot as control sends it and as nodes store it, each kind in one section. */
import { toSentView } from '#model/definition.ts'
import type { Snapshot } from '#model/snapshot.ts'
import type { Section, SectionKind } from '#model/snapshot-sections.ts'
import { printUpdate } from '#node/snapshot-sections.ts'

export function snapshotLines(
  { epoch, region, keys, revoked_keys, jwks, token_issuer, certificate, endpoints }: Snapshot,
  kinds: readonly SectionKind[] = ['installation', 'keys', 'endpoints', 'views'],
): Buffer {
  const version = `v${epoch}`
  const [host] = endpoints.flatMap(({ ingest_host }) => (ingest_host?.includes(`.${region}.`) ? [ingest_host] : []))
  const base_domain = host === undefined ? null : host.slice(host.indexOf(`.${region}.`) + region.length + 2)
  const views = new Map(endpoints.flatMap((endpoint) => endpoint.views.map((view) => [view.view_id, view] as const)))
  const sections: Section[] = [
    { kind: 'installation', name: 'installation', version, token_issuer, jwks, base_domain, certificate },
    {
      ...{ kind: 'keys', name: 'keys/00', version, keys },
      revoked_keys: revoked_keys.map(({ id }) => id),
      expiring_keys: revoked_keys.flatMap(({ id, tokens_until, name }) =>
        tokens_until === null ? [] : [{ id, tokens_until, name }],
      ),
    },
    {
      kind: 'endpoints',
      name: 'endpoints/00',
      version,
      endpoints: endpoints.map(({ ingest_host, views, shadows = [], committed_seq: _, ...endpoint }) => ({
        ...endpoint,
        label: ingest_host?.split('.')[0] ?? '',
        bindings: views.map(
          ({ name: _name, version: _version, definition: _definition, secrets: _secrets, ...binding }) => binding,
        ),
        shadows: shadows.map(({ binding_id: shadow_id, view_id: id, name, version: of, definition, activated_at }) =>
          toSentView({ shadow_id, id, name, version: of, definition, activated_at }),
        ),
      })),
    },
    {
      kind: 'views',
      name: 'views/00',
      version,
      views: [...views.values()].map(({ view_id: id, name, version, definition, secrets }) => ({
        ...{ id, name, version, definition },
        ...(secrets === undefined ? {} : { secrets: { ...secrets } }),
      })),
    },
  ]
  return printUpdate({
    sections: sections.filter(({ kind }) => kinds.includes(kind)),
    end: { kind: 'end', epoch, region, removed: [] },
  })
}
