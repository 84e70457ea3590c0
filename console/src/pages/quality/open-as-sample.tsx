import { useNavigate } from '@tanstack/react-router'
import { FlaskConical } from 'lucide-react'
import { openDraft } from '../../api/drafts.ts'
import { type ViewDetail, viewsKey } from '../../api/views.ts'
import { Button } from '../../design/button.tsx'
import { Failure } from '../../shell/failure.tsx'
import { keepSamples } from '../../shell/kept-samples.ts'
import { useAccount, useMay } from '../../shell/session.tsx'
import { useChange } from '../../shell/use-change.ts'

/** Opens a draft of the view in the editor, with the record as its sample. */
export function OpenAsSample({ view, record }: { readonly view: ViewDetail; readonly record: string }) {
  const account = useAccount()
  const navigate = useNavigate()
  const mayChange = useMay('member')
  const open = useChange({
    call: () => openDraft(view.id),
    leave: () => keepSamples(account, view.name, record),
    changes: [viewsKey(account)],
    done: ({ id }) => navigate({ to: '/in/$account/views/$view/edit', params: { account, view: id } }),
  })
  if (!mayChange) return null
  return (
    <>
      <div>
        <Button icon={<FlaskConical aria-hidden="true" />} busy={open.isPending} onClick={() => open.mutate()}>
          Open in the editor as sample
        </Button>
      </div>
      {open.isError && <Failure error={open.error} />}
    </>
  )
}
