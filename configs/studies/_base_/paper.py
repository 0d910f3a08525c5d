# The paper's seeds, and what is measured of each network.
seeds = [0, 1, 2, 3, 4]
measure = dict(num_samples=2000, definitions=['residual', 'output', 'update'],
               ablate_steps=True)
