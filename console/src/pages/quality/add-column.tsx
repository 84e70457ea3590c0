import { useNavigate } from '@tanstack/react-router'
import { addColumnToDraft } from '../../api/drafts.ts'
import type { UnmappedPath } from '../../api/view-metrics.ts'
import { type ViewDetail, viewsKey } from '../../api/views.ts'
import { Dialog } from '../../design/dialog.tsx'
import { TextField } from '../../design/field.tsx'
import { CallForm } from '../../shell/call-form.tsx'
import { useAccount } from '../../shell/session.tsx'
import { useChange } from '../../shell/use-change.ts'
import { useFields } from '../../shell/use-fields.ts'
import { proposeColumn } from './proposed-column.ts'

type AddColumnProps = { readonly view: ViewDetail; readonly path: UnmappedPath; readonly onClose: () => void }

/** Adds a column that reads the path to a draft, and opens the draft in the editor. */
export function AddColumn({ view, path, onClose }: AddColumnProps) {
  const account = useAccount()
  const navigate = useNavigate()
  const names = view.definition.columns.map((column) => column.name)
  const { values, field } = useFields(proposeColumn(path, names))
  const draft = view.versions.find(({ status }) => status === 'draft')
  const add = useChange({
    call: () => addColumnToDraft(view.id, { ...values, path: path.path }),
    changes: [viewsKey(account)],
    done: (changed) => navigate({ to: '/in/$account/views/$view/edit', params: { account, view: changed.id } }),
    said: (changed) => `Column ${values.name} added to version ${changed.version}`,
  })
  const about =
    draft === undefined
      ? 'Published versions never change: the column goes into a draft of the next version, which opens in the editor.'
      : `The column goes into version ${draft.version}, which is a draft, and opens in the editor.`
  return (
    <Dialog open onClose={onClose} title={`Add a column for ${path.path}`} about={about}>
      <CallForm call={add} action="Add column">
        {(_errorOf) => (
          <>
            <TextField label="Name" {...field('name')} required />
            <TextField
              label="Type"
              {...field('type')}
              required
              hint={`The samples have values of the ${path.types.length === 1 ? 'kind' : 'kinds'} ${path.types.join(', ')}.`}
            />
          </>
        )}
      </CallForm>
    </Dialog>
  )
}
