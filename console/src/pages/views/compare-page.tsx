import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { type ViewDetail, viewQuery } from '../../api/views.ts'
import { EmptyState } from '../../design/empty-state.tsx'
import { SelectField } from '../../design/field.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { Differences } from '../../editor/differences.tsx'
import { languages } from '../../editor/languages.ts'
import { Failure } from '../../shell/failure.tsx'
import { useAccount } from '../../shell/session.tsx'
import { printDefinition } from './definition-text.ts'
import { StoredComparison } from './stored-comparison.tsx'
import { ViewFrame } from './view-frame.tsx'
import style from './views.module.css'

const route = getRouteApi('/signed-in/in/$account/views/$view/compare')

/** Shows the differences between two versions. */
export function ComparePage() {
  const { view: id } = route.useParams()
  return <ViewFrame id={id}>{(view) => <Compare key={view.id} view={view} />}</ViewFrame>
}

function Compare({ view }: { readonly view: ViewDetail }) {
  const { with: chosen } = route.useSearch()
  const navigate = route.useNavigate()
  const others = view.versions.filter(({ id }) => id !== view.id).toSorted((a, b) => b.version - a.version)
  // The version before this one is what people ask for.
  const other = others.find(({ id }) => id === chosen) ?? others.find(({ version }) => version < view.version) ?? others[0]
  if (other === undefined) {
    return (
      <EmptyState title="There is no other version">
        <p>Create the next version, change it, and see here what changed before you publish it.</p>
      </EmptyState>
    )
  }
  return (
    <>
      <div className={style.search}>
        <SelectField
          label="Compare with"
          value={other.id}
          choices={others.map(({ id, version, status }) => ({ value: id, label: `Version ${version} (${status})` }))}
          onChange={(id) => void navigate({ search: { with: id }, replace: true })}
        />
      </div>
      <Comparison view={view} other={other.id} />
    </>
  )
}

function Comparison({ view, other }: { readonly view: ViewDetail; readonly other: string }) {
  const found = useQuery(viewQuery(useAccount(), other))
  if (found.isError) return <Failure error={found.error} onRetry={() => void found.refetch()} />
  if (found.data === undefined) return <Skeleton rows={6} height="figure" />
  const [before, after] = found.data.version < view.version ? [found.data, view] : [view, found.data]
  const [left, right] = [sideOf(before), sideOf(after)]
  return (
    <>
      {left.text === right.text ? (
        <EmptyState title={`Versions ${before.version} and ${after.version} define the same`} />
      ) : (
        <figure className={style.panel}>
          <figcaption className={style.quiet}>
            Version {before.version}, and what version {after.version} makes of it.
          </figcaption>
          <Differences before={left} after={right} language={languages.yaml} />
        </figure>
      )}
      {before.status !== 'draft' && (
        <StoredComparison
          key={`${before.id} ${after.id}`}
          viewId={view.id}
          compared={{ version: after.version, base_version: before.version }}
          about={`What version ${after.version} makes of records of the last 24 hours, beside version ${before.version}. Nothing is saved.`}
        />
      )}
    </>
  )
}

function sideOf({ version, definition }: Pick<ViewDetail, 'version' | 'definition'>) {
  return { label: `Version ${version}`, text: printDefinition(definition, 'yaml') }
}
