import { useBlocker } from '@tanstack/react-router'
import { Confirm } from '../../design/confirm.tsx'

/** Asks before a screen with unsaved changes is left. `isUnsaved` is called at that moment. */
export function GuardUnsaved({ isUnsaved }: { readonly isUnsaved: () => boolean }) {
  const leaving = useBlocker({
    shouldBlockFn: ({ current, next }) => current.pathname !== next.pathname && isUnsaved(),
    enableBeforeUnload: isUnsaved,
    withResolver: true,
  })
  return (
    <Confirm
      open={leaving.status === 'blocked'}
      onClose={() => leaving.reset?.()}
      title="Leave without saving?"
      action="Discard changes"
      onConfirm={() => leaving.proceed?.()}
    >
      <p>The changes since the last save are lost.</p>
    </Confirm>
  )
}
